package specwire.generated.java;

/** How many octets a value has. */
public abstract class Extent {
    private Extent() {}

    /** The number of octets of the value at the cursor; throws {@link Refusal} if there are fewer. */
    abstract int open(Cursor in);

    /** Where the value begins for errors: with its length if that is directly before it. */
    int start(Cursor in) {
        return in.at;
    }

    /** The fixed number of octets, -1 if it varies. */
    int octets() {
        return -1;
    }

    /** Always as many octets. */
    public static Extent fixed(int octets) {
        return new Extent() {
            @Override
            int open(Cursor in) {
                in.need(octets);
                return octets;
            }

            @Override
            int octets() {
                return octets;
            }
        };
    }

    /** As many octets as the hidden number directly before the value says. */
    public static Extent prefixed(int register) {
        return new Extent() {
            @Override
            int open(Cursor in) {
                long length = in.number(register);
                if (Long.compareUnsigned(length, in.left()) > 0) {
                    throw in.refuse("length", Words.octets(length), Integer.toString(in.left()), in.at);
                }
                return (int) length;
            }

            @Override
            int start(Cursor in) {
                return in.position(register);
            }
        };
    }

    /** All octets of the body that are left. */
    public static Extent rest() {
        return new Extent() {
            @Override
            int open(Cursor in) {
                return in.left();
            }
        };
    }

    /** Up to the first occurrence of these octets, which are expected after the value. */
    public static Extent until(String hex) {
        byte[] octets = Bytes.parse(hex);
        return new Extent() {
            @Override
            int open(Cursor in) {
                int found = Bytes.indexOf(in.octets, octets, in.at, in.end);
                if (found < 0) {
                    String left = Words.show(in.octets, in.at, in.end);
                    throw in.refuse("text", Words.show(octets) + " behind it", left, in.at);
                }
                return found - in.at;
            }
        };
    }
}
