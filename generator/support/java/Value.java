package specwire.generated.java;

/** Operation with a column, whose value does not fit in it. */
abstract class Value extends Operation {
    final int column;

    Value(Field field, int column) {
        super(field);
        this.column = column;
    }

    @Override
    void absent(RowWriter row) {
        row.setNull(column, Store.POINTER);
    }

    @Override
    int room() {
        return Long.BYTES;
    }
}
