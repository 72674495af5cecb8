package specwire.generated.java;

import java.util.List;

/** Shape of a message: how its first frames begin, and their number. */
public final class Shape {
    /** How a frame begins. */
    public static final class Head {
        private final String pattern;
        private final byte[] octets;
        private final byte[] masks;
        private final boolean whole;

        /** Octets in hexadecimal, {@code ?} for any half octet, and whether they are the whole frame. */
        public Head(String pattern, boolean whole) {
            this.pattern = pattern;
            this.whole = whole;
            octets = PatternSelection.octets(pattern);
            masks = PatternSelection.masks(pattern);
        }

        /** What the head fixes from an octet on, in hexadecimal. */
        String start(int skipped) {
            return PatternSelection.start(pattern.substring(2 * skipped));
        }

        /** The number of octets at the start that can be any octets. */
        int open() {
            int at = 0;
            while (at < octets.length && pattern.startsWith("??", 2 * at)) {
                at++;
            }
            return at;
        }

        int octets() {
            return octets.length;
        }

        boolean whole() {
            return whole;
        }

        /** The wanted number of octets, in words. */
        String size() {
            return (whole ? "" : "at least ") + Words.octets(octets.length);
        }

        boolean fits(Cursor in, int frame, boolean folded) {
            int size = in.size(frame);
            return (whole ? size == octets.length : size >= octets.length) && agrees(in, frame, folded);
        }

        /** Whether the frame agrees with the head as far as both go. */
        boolean agrees(Cursor in, int frame, boolean folded) {
            int size = Math.min(octets.length, in.size(frame));
            byte[] array = in.array(frame);
            int begin = in.begin(frame);
            for (int at = 0; at < size; at++) {
                byte octet = array[begin + at];
                if (((folded ? Bytes.lower(octet) : octet) & masks[at]) != (octets[at] & masks[at])) {
                    return false;
                }
            }
            return true;
        }
    }

    private final String className;
    private final int least;
    private final int most;
    private final List<String> senders;
    private final boolean needsSender;
    private final Head[] heads;

    /**
     * The shape of the message of a class.
     *
     * @param least the fewest frames
     * @param most the most frames, -1 for any number
     * @param senders the roles that send the message, empty if unknown
     * @param needsSender whether only the sender distinguishes the message from another
     */
    public Shape(
            String className, int least, int most, List<String> senders, boolean needsSender, Head... heads) {
        this.className = className;
        this.least = least;
        this.most = most;
        this.senders = senders;
        this.needsSender = needsSender;
        this.heads = heads;
    }

    String className() {
        return className;
    }

    int least() {
        return least;
    }

    List<String> senders() {
        return senders;
    }

    boolean needsSender() {
        return needsSender;
    }

    Head[] heads() {
        return heads;
    }

    boolean fits(Cursor in, boolean folded) {
        return in.count >= least && (most < 0 || in.count <= most) && good(in, folded) == heads.length;
    }

    /** Number of frames that match, from the first on. */
    int good(Cursor in, boolean folded) {
        int count = Math.min(heads.length, in.count);
        for (int number = 0; number < count; number++) {
            if (!heads[number].fits(in, number, folded)) {
                return number;
            }
        }
        return count;
    }
}
