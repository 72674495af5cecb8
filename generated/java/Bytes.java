// Written by specwire from generator/support/java/Bytes.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.Arrays;

/** Comparison and search of octets in place. */
final class Bytes {
    private Bytes() {}

    /** Whether {@code frame} has {@code octets} at {@code at}; they must not exceed the frame. */
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

    /** Position of the first {@code wanted} in {@code frame} from {@code at} to {@code end}; -1 if there is none. */
    static int indexOf(byte[] frame, byte[] wanted, int at, int end) {
        for (int found = at; found + wanted.length <= end; found++) {
            if (standAt(frame, found, wanted)) {
                return found;
            }
        }
        return -1;
    }

    /** The octets from {@code begin} to {@code end}; the frame itself if that is all of it. */
    static byte[] slice(byte[] frame, int begin, int end) {
        return begin == 0 && end == frame.length ? frame : Arrays.copyOfRange(frame, begin, end);
    }

    /** At most {@code count} octets of a frame from offset {@code at}; none if it ends earlier. */
    static byte[] atMost(byte[] frame, int at, int count) {
        int begin = Math.min(at, frame.length);
        return Arrays.copyOfRange(frame, begin, Math.min(frame.length, begin + count));
    }
}
