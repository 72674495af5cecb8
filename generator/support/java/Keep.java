package specwire.generated.java;

/** A hidden number, kept for the operations after it: what it counts is not directly behind it, or it is a checksum. */
public final class Keep extends Operation {
    private final Coding coding;
    private final int register;

    public Keep(Field field, int register, Coding coding) {
        super(field);
        this.register = register;
        this.coding = coding;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        int start = in.at;
        in.keep(register, coding.read(in), start);
    }
}
