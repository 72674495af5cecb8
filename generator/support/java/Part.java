package specwire.generated.java;

/** Part of a message: a frame, or frames with one value each. */
public abstract class Part {
    final Field field;
    final Presence presence;
    final Body body;
    private final Expect constant;

    Part(Field field, Presence presence, Operation... body) {
        this.field = field;
        this.presence = presence;
        this.body = new Body(body);
        constant = body.length == 1 && body[0] instanceof Expect only ? only : null;
    }

    /** Whether every message has frames of the part. */
    boolean isRequired() {
        return presence.kind() == Presence.Kind.ALWAYS;
    }

    /** What a message lacks that ends before the part. */
    abstract String missing();

    /** Reads the part from the frame at the cursor on, and moves to the frame after it. */
    abstract void read(Cursor in);

    /** Writes the columns of a part that the message lacks. */
    void absent(RowWriter row) {
        body.absent(row);
    }

    /** Expected number of octets in the row for the part, besides its columns and the octets of the message. */
    int room() {
        return body.room();
    }

    /** Reads the operations from the start of the frame; a constant alone is the whole frame. */
    final void open(Cursor in) {
        in.open();
        if (constant == null) {
            body.read(in);
        } else {
            constant.readFrame(in);
        }
    }
}
