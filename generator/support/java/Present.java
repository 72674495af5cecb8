package specwire.generated.java;

/** Whether a condition holds, in a column; then there are constants. */
public final class Present extends Value {
    private final When when;
    private final Body body;

    public Present(Field field, int column, When when, Operation... body) {
        super(field, column);
        this.when = when;
        this.body = new Body(body);
    }

    @Override
    Body body() {
        return body;
    }

    @Override
    void read(Cursor in) {
        boolean present = when.holds(in);
        in.row.number(column, Store.BOOLEAN, present ? 1 : 0);
        if (present) {
            body.read(in);
        }
    }

    @Override
    void absent(RowWriter row) {
        row.setNull(column, Store.BOOLEAN);
    }

    @Override
    int room() {
        return 0;
    }
}
