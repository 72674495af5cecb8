package specwire.generated.java;

import java.util.Arrays;

/** Octets compared and looked for in their place. */
final class Bytes {
    private Bytes() {}

    /** Whether {@code octets} stand in {@code frame} from {@code at} on; they must not reach beyond it. */
    static boolean standAt(byte[] frame, int at, byte[] octets) {
        for (int index = 0; index < octets.length; index++) {
            if (frame[at + index] != octets[index]) {
                return false;
            }
        }
        return true;
    }

    /** Whether {@code octets} begin with {@code head}. */
    static boolean begins(byte[] octets, byte[] head) {
        return head.length <= octets.length && standAt(octets, 0, head);
    }

    /** Where {@code wanted} stands first in {@code frame}, from {@code at} up to {@code end}; -1 for nowhere. */
    static int indexOf(byte[] frame, byte[] wanted, int at, int end) {
        for (int found = at; found + wanted.length <= end; found++) {
            if (standAt(frame, found, wanted)) {
                return found;
            }
        }
        return -1;
    }

    /** The octets from {@code begin} up to {@code end}: the frame itself where that is all of it. */
    static byte[] slice(byte[] frame, int begin, int end) {
        return begin == 0 && end == frame.length ? frame : Arrays.copyOfRange(frame, begin, end);
    }

    /** At most {@code count} octets of a frame, from octet {@code at} on; none where it ends before. */
    static byte[] atMost(byte[] frame, int at, int count) {
        int begin = Math.min(at, frame.length);
        return Arrays.copyOfRange(frame, begin, Math.min(frame.length, begin + count));
    }
}
