package specwire.generated.java;

/**
 * Octets that tell messages apart.
 *
 * @param frame the index of the frame; a negative one counts from the end
 * @param octets the number of its first octets; {@link #ALL} for the whole frame
 */
public record Selector(int frame, int octets) {
    /** All octets of a frame. */
    public static final int ALL = -1;

    boolean isWhole() {
        return octets == ALL;
    }

    /** Whether the selector covers a constant at this offset. */
    boolean covers(int offset) {
        return octets == ALL || offset < octets;
    }

    /** Number of the octets in the frame with this index. */
    int size(Cursor in, int place) {
        return octets == ALL ? in.size(place) : Math.min(octets, in.size(place));
    }
}
