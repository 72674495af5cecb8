package specwire.generated.java;

/** A record, in a column. */
public final class Nest extends Value {
    private final Struct struct;

    public Nest(Field field, int column, Struct struct) {
        super(field, column);
        this.struct = struct;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        struct.read(in, column);
    }

    @Override
    int room() {
        return struct.room();
    }
}
