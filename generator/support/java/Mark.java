package specwire.generated.java;

/** A position, kept for {@link Verify}. */
public final class Mark extends Operation {
    private final int register;

    public Mark(int register) {
        super(null);
        this.register = register;
    }

    @Override
    void read(Cursor in) {
        in.keep(register, 0, in.at);
    }
}
