package specwire.generated.java;

/** How many octets a value has. */
public final class Extent {
    private enum Kind { FIXED, COUNTED, REST, UNTIL, RUN }

    private final Kind kind;
    private final int octets;
    private final Count count;
    private final byte[] until;
    /** For each octet, whether it belongs to the run. */
    private final boolean[] among = new boolean[256];

    private Extent(Kind kind, int octets, Count count, String until) {
        this.kind = kind;
        this.octets = octets;
        this.count = count;
        this.until = Bytes.parse(until);
        for (byte octet : this.until) {
            among[octet & 0xff] = true;
        }
    }

    /** Always as many octets. */
    public static Extent fixed(int octets) {
        return new Extent(Kind.FIXED, octets, null, "");
    }

    /** As many octets as a number says. */
    public static Extent counted(Count count) {
        return new Extent(Kind.COUNTED, 0, count, "");
    }

    /** All octets of the body that are left, but the last {@code behind}. */
    public static Extent rest(int behind) {
        return new Extent(Kind.REST, behind, null, "");
    }

    /** Up to the first occurrence of these octets, which are expected after the value. */
    public static Extent until(String hex) {
        return new Extent(Kind.UNTIL, 0, null, hex);
    }

    /** All octets up to the first that is not one of these: at least {@code octets}. */
    public static Extent run(int octets, String among) {
        return new Extent(Kind.RUN, octets, null, among);
    }

    /** The fixed number of octets, -1 if it varies. */
    int octets() {
        return kind == Kind.FIXED ? octets : -1;
    }

    /**
     * The number of octets of the value, which then begins at the cursor; throws {@link Refusal} if there are fewer.
     * {@link Cursor#counted} is where the value begins for errors: with the number of its octets.
     */
    int read(Cursor in) {
        in.counted = in.at;
        if (kind == Kind.REST) {
            if (octets > in.left()) {
                throw in.refuse("length", "at least " + Words.octets(octets), Integer.toString(in.left()), in.at);
            }
            return in.left() - octets;
        }
        if (kind == Kind.COUNTED) {
            long length = count.read(in);
            if (Long.compareUnsigned(length, in.left()) > 0) {
                throw in.refuse("length", Words.octets(length), Integer.toString(in.left()), in.at);
            }
            return (int) length;
        }
        if (kind == Kind.FIXED) {
            in.need(octets);
            return octets;
        }
        if (kind == Kind.RUN) {
            return run(in);
        }
        int found = Bytes.indexOf(in.octets, until, in.at, in.end);
        if (found < 0) {
            String left = Words.show(in.octets, in.at, in.end);
            throw in.refuse("text", Words.show(until) + " behind it", left, in.at);
        }
        return found - in.at;
    }

    private int run(Cursor in) {
        int stop = in.at;
        while (stop < in.end && among[in.octets[stop] & 0xff]) {
            stop++;
        }
        if (stop - in.at < octets) {
            String found = Words.show(in.octets, stop, Math.min(in.end, stop + 1));
            throw in.refuse("text", "characters that the rule " + in.ruleName() + " allows", found, stop);
        }
        return stop - in.at;
    }
}
