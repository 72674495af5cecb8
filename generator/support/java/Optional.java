package specwire.generated.java;

/** Operations that are omitted unless a condition holds; their columns are then null. */
public final class Optional extends Operation {
    private final When when;
    private final Body body;

    public Optional(When when, Operation... body) {
        super(null);
        this.when = when;
        this.body = new Body(body);
    }

    @Override
    Body body() {
        return body;
    }

    @Override
    void read(Cursor in) {
        if (when.holds(in)) {
            body.read(in);
        } else {
            body.absent(in.row);
        }
    }

    @Override
    void absent(RowWriter row) {
        body.absent(row);
    }

    @Override
    int room() {
        return body.room();
    }
}
