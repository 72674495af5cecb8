// Written by specwire from generator/support/java/Nest.java. Do not edit; change that file and run `make generate`.
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
