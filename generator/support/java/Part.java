package specwire.generated.java;

/** Part of a message: a frame, or frames with one value each. */
public abstract class Part {
    final Field field;
    final Presence presence;
    private final boolean always;
    private final boolean counted;
    private final int mask;
    private final int value;
    final Body body;
    private final Expect constant;

    Part(Field field, Presence presence, Operation... body) {
        this.field = field;
        this.presence = presence;
        always = presence.kind() == Presence.Kind.ALWAYS;
        counted = presence.kind() == Presence.Kind.COUNTED;
        mask = presence.mask();
        value = presence.value();
        this.body = new Body(body);
        constant = body.length == 1 && body[0] instanceof Expect only ? only : null;
    }

    /** Whether every message has frames of the part. */
    boolean isRequired() {
        return always;
    }

    /** Whether a message has the part; {@code after} is the minimum number of frames after the part. */
    final boolean isPresent(Cursor in, int flags, int after) {
        return always || (counted ? in.index < in.count - after : flags >= 0 && (flags & mask) == value);
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
