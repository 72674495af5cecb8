package specwire.generated.java;

/** Condition of an {@link Optional}. */
public abstract class When {
    private When() {}

    abstract boolean holds(Cursor in);

    /** More than {@code octets} octets of the body are left. */
    public static When left(int octets) {
        return new When() {
            @Override
            boolean holds(Cursor in) {
                return in.left() > octets;
            }
        };
    }

    /** The next octets are these, in hexadecimal; with {@code folded}, letters are read in either case. */
    public static When octets(String hex, boolean folded) {
        byte[] wanted = Bytes.parse(hex);
        return new When() {
            @Override
            boolean holds(Cursor in) {
                return in.begins(wanted, folded);
            }
        };
    }

    /** The number in a register, and {@code mask} if that is not 0, is one of {@code values}. */
    public static When number(int register, long mask, long... values) {
        return new When() {
            @Override
            boolean holds(Cursor in) {
                long number = in.number(register);
                long found = mask == 0 ? number : number & mask;
                for (long value : values) {
                    if (value == found) {
                        return true;
                    }
                }
                return false;
            }
        };
    }
}
