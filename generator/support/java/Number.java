package specwire.generated.java;

/** A number, in a column. */
public final class Number extends Value {
    private final Coding coding;
    private final Store store;

    public Number(Field field, int column, Store store, Coding coding) {
        super(field, column);
        this.coding = coding;
        this.store = store;
    }

    /** Whether it is an unsigned big-endian integer of any value. */
    boolean isPlain() {
        return coding.isPlain();
    }

    /** Writes the number at an offset from the cursor, where it is known to be. */
    void write(Cursor in, int offset) {
        in.row.number(column, store, Bytes.number(in.octets, in.at + offset, coding.octets()));
    }

    @Override
    int octets() {
        return coding.octets();
    }

    @Override
    void read(Cursor in) {
        enter(in);
        in.row.number(column, store, coding.read(in));
    }

    @Override
    void absent(RowWriter row) {
        row.setNull(column, store);
    }

    @Override
    int room() {
        return store == Store.DECIMAL ? 16 : 0;
    }
}
