package specwire.generated.java;

import java.util.Arrays;

/** Octets that tell messages apart: the first {@code octets} of a frame, or all of it where there is no such number. */
public final class Selector {
    static final int ALL = -1;

    private final int frame;
    private final int octets;

    private Selector(int frame, int octets) {
        this.frame = frame;
        this.octets = octets;
    }

    /** The first octets of a frame, which is counted from the end where its number is negative. */
    public static Selector octets(int frame, int octets) {
        return new Selector(frame, octets);
    }

    /** All octets of a frame. */
    public static Selector frame(int frame) {
        return new Selector(frame, ALL);
    }

    int frame() {
        return frame;
    }

    boolean isWhole() {
        return octets == ALL;
    }

    /** Whether a constant at that offset is one of those that the selector looks at. */
    boolean covers(int offset) {
        return octets == ALL || offset < octets;
    }

    /** The number of the frame among so many, -1 where there is none. */
    static int place(int frame, int count) {
        int place = frame < 0 ? frame + count : frame;
        return place >= 0 && place < count ? place : -1;
    }

    boolean finds(Object[] frames, byte[] piece) {
        int place = place(frame, frames.length);
        if (place < 0) {
            return false;
        }
        byte[] octetsThere = (byte[]) frames[place];
        int size = octets == ALL ? octetsThere.length : Math.min(octets, octetsThere.length);
        return size == piece.length && Arrays.equals(octetsThere, 0, size, piece, 0, size);
    }
}
