// Written by specwire from generator/support/java/Mark.java. Do not edit; change that file and run `make generate`.
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
