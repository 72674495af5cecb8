package specwire.generated.java;

/**
 * Operation of a plan: reads the next octets of a message, and writes what they mean into the row.
 *
 * <p>Operations do not change, so all threads share them.
 */
public abstract class Operation {
    /** Column of a value that is an item of a list. */
    public static final int ITEM = RowWriter.ITEM;

    /** A column or register of a value that has none. */
    public static final int NONE = Cursor.NONE;

    final Field field;

    Operation(Field field) {
        this.field = field;
    }

    /** Reads at the cursor and advances it; throws {@link Refusal} for octets that are not allowed there. */
    abstract void read(Cursor in);

    /** Names the field, if errors need it. */
    final void enter(Cursor in) {
        if (in.names) {
            in.enter(field);
        }
    }

    /** Writes the columns of an operation that the message lacks. */
    void absent(RowWriter row) {}

    /** The fixed number of octets; -1 if it varies, or if it only counts what follows. */
    int octets() {
        return -1;
    }

    /** The operations in this one that follow in the same body; null if there are none. */
    Body body() {
        return null;
    }

    /** Expected number of octets in the row for each value, besides its column and the octets of the message. */
    int room() {
        return 0;
    }
}
