package specwire.generated.java;

/** A number, in a column. */
public final class Number extends Value {
    private final Coding coding;
    private final Store store;
    private final int register;

    public Number(Field field, int column, Store store, Coding coding) {
        this(field, column, store, coding, NONE);
    }

    /** A number that is also kept in a register, because it says whether other values are present. */
    public Number(Field field, int column, Store store, Coding coding, int register) {
        super(field, column);
        this.coding = coding;
        this.store = store;
        this.register = register;
    }

    /** Where the number is kept; {@link Operation#NONE} if it is not. */
    int register() {
        return register;
    }

    /** Whether it is an unsigned big-endian integer of any value. */
    boolean isPlain() {
        return coding.isPlain();
    }

    /** Writes the number at an offset from the cursor, where it is known to be. */
    void write(Cursor in, int offset) {
        put(in, Bytes.number(in.octets, in.at + offset, coding.octets()), in.at + offset);
    }

    private void put(Cursor in, long value, int start) {
        if (register >= 0) {
            in.keep(register, value, start);
        }
        in.row.number(column, store, value);
    }

    @Override
    int octets() {
        return coding.octets();
    }

    @Override
    void read(Cursor in) {
        enter(in);
        int start = in.at;
        put(in, coding.read(in), start);
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
