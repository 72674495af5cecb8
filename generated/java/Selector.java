// Written by specwire from generator/support/java/Selector.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.Arrays;

/** Octets that tell messages apart: the first {@code octets} of a frame, or the whole frame. */
public final class Selector {
    static final int ALL = -1;

    private final int frame;
    private final int octets;

    private Selector(int frame, int octets) {
        this.frame = frame;
        this.octets = octets;
    }

    /** The first octets of a frame; a negative index counts from the end. */
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

    /** Whether the selector covers a constant at this offset. */
    boolean covers(int offset) {
        return octets == ALL || offset < octets;
    }

    /** Index of the frame, -1 if it is missing. */
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
