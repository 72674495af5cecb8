package specwire.generated.java;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Detection of UTF-8 faults as in Python's decoder: no surrogates and no overlong forms.
 */
final class Utf8 {
    private static final VarHandle LONGS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INTEGERS =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long HIGH_BITS = 0x8080808080808080L;

    private Utf8() {}

    /** Refuses octets that are not UTF-8. */
    static void check(Cursor in, int begin, int end) {
        int fault = fault(in.octets, begin, end);
        if (fault >= 0) {
            int size = faultSize(in.octets, fault, end);
            throw in.refuse("text", "UTF-8", Words.show(in.octets, fault, fault + size), fault);
        }
    }

    /** Position of the first fault from {@code begin} to {@code end}, -1 if there is none. */
    private static int fault(byte[] octets, int begin, int end) {
        return isAscii(octets, begin, end) ? -1 : faultBeyond(octets, begin, end);
    }

    /** Whether all octets are ASCII; the last word overlaps the one before, so no single octets remain. */
    private static boolean isAscii(byte[] octets, int begin, int end) {
        int size = end - begin;
        if (size < 4) {
            return size == 0 || (octets[begin] | octets[begin + size / 2] | octets[end - 1]) >= 0;
        }
        if (size < 8) {
            return (((int) INTEGERS.get(octets, begin) | (int) INTEGERS.get(octets, end - 4)) & (int) HIGH_BITS) == 0;
        }
        long found = (long) LONGS.get(octets, end - 8);
        for (int at = begin; at < end - 8; at += 8) {
            found |= (long) LONGS.get(octets, at);
        }
        return (found & HIGH_BITS) == 0;
    }

    private static int faultBeyond(byte[] octets, int begin, int end) {
        int at = begin;
        while (at < end) {
            while (at + 8 <= end && ((long) LONGS.get(octets, at) & HIGH_BITS) == 0) {
                at += 8;
            }
            if (at == end) {
                break;
            }
            if (octets[at] >= 0) {
                at++;
                continue;
            }
            int size = size(octets[at]);
            if (size == 0 || good(octets, at, Math.min(end, at + size)) < size) {
                return at;
            }
            at += size;
        }
        return -1;
    }

    /** Number of octets of the fault at {@code at}: those that could begin a character, at least one. */
    private static int faultSize(byte[] octets, int at, int end) {
        int size = size(octets[at]);
        return size == 0 ? 1 : good(octets, at, Math.min(end, at + size));
    }

    /** Number of octets of a character with this first octet, 0 if it is invalid. */
    private static int size(byte first) {
        int octet = first & 0xff;
        if (octet < 0xc2 || octet > 0xf4) {
            return 0;
        }
        return octet < 0xe0 ? 2 : octet < 0xf0 ? 3 : 4;
    }

    /** Number of valid octets of a multi-octet character, including the first. */
    private static int good(byte[] octets, int at, int end) {
        if (at + 1 == end || !isSecond(octets[at] & 0xff, octets[at + 1] & 0xff)) {
            return 1;
        }
        int next = at + 2;
        while (next < end && (octets[next] & 0xc0) == 0x80) {
            next++;
        }
        return next - at;
    }

    private static boolean isSecond(int first, int second) {
        return switch (first) {
            case 0xe0 -> second >= 0xa0 && second <= 0xbf;
            case 0xed -> second >= 0x80 && second <= 0x9f;
            case 0xf0 -> second >= 0x90 && second <= 0xbf;
            case 0xf4 -> second >= 0x80 && second <= 0x8f;
            default -> second >= 0x80 && second <= 0xbf;
        };
    }
}
