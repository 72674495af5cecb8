package specwire.generated.java;

/** A hidden number, which is kept in a register: how many octets or items another operation has. */
public final class Count extends Operation {
    private final Coding coding;
    private final int register;

    public Count(Field field, int register, Coding coding) {
        super(field);
        this.coding = coding;
        this.register = register;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        int start = in.at;
        in.keep(register, coding.read(in), start);
    }
}
