package specwire.generated.java;

/** An operation, and all that follow in the body: omitted if the octets end before it. */
public final class Optional extends Operation {
    private final Body body;

    public Optional(Operation... body) {
        super(null);
        this.body = new Body(body);
    }

    @Override
    Body body() {
        return body;
    }

    @Override
    void read(Cursor in) {
        if (in.at == in.end) {
            body.absent(in.row);
        } else {
            body.read(in);
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
