package specwire.generated.java;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/** Octets in place: numbers, comparison and search. */
final class Bytes {
    private static final VarHandle SHORTS =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle INTEGERS =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle LONGS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private Bytes() {}

    /** The octets that a layout has in hexadecimal. */
    static byte[] parse(String hex) {
        return HexFormat.of().parseHex(hex);
    }

    /** The octets from {@code begin} to {@code end} as text. */
    static String ascii(byte[] octets, int begin, int end) {
        return new String(octets, begin, end - begin, StandardCharsets.US_ASCII);
    }

    /** An unsigned big-endian integer of 1 to 8 octets. */
    static long number(byte[] octets, int from, int size) {
        switch (size) {
            case 1:
                return octets[from] & 0xff;
            case 2:
                return (short) SHORTS.get(octets, from) & 0xffff;
            case 4:
                return (int) INTEGERS.get(octets, from) & 0xffff_ffffL;
            case 8:
                return (long) LONGS.get(octets, from);
            default:
                long value = 0;
                for (int at = from; at < from + size; at++) {
                    value = value << 8 | octets[at] & 0xff;
                }
                return value;
        }
    }

    /** Whether {@code octets} from {@code begin} to {@code end} equal {@code wanted}. */
    static boolean equal(byte[] octets, int begin, int end, byte[] wanted) {
        return end - begin == wanted.length && standAt(octets, begin, wanted);
    }

    /** Whether {@code octets} have {@code wanted} at {@code at}; they must not be exceeded. */
    static boolean standAt(byte[] octets, int at, byte[] wanted) {
        for (int index = 0; index < wanted.length; index++) {
            if (octets[at + index] != wanted[index]) {
                return false;
            }
        }
        return true;
    }

    /** The octet; an ASCII letter in lower case. */
    static byte lower(byte octet) {
        return octet >= 'A' && octet <= 'Z' ? (byte) (octet + 'a' - 'A') : octet;
    }

    /** A copy with ASCII letters in lower case. */
    static byte[] lower(byte[] octets) {
        byte[] found = new byte[octets.length];
        for (int at = 0; at < octets.length; at++) {
            found[at] = lower(octets[at]);
        }
        return found;
    }

    /** The same as {@link #standAt}; with {@code folded}, letters are read in either case. */
    static boolean standAt(byte[] octets, int at, byte[] wanted, boolean folded) {
        if (!folded) {
            return standAt(octets, at, wanted);
        }
        for (int index = 0; index < wanted.length; index++) {
            if (lower(octets[at + index]) != lower(wanted[index])) {
                return false;
            }
        }
        return true;
    }

    /** The same as {@link #equal}; with {@code folded}, letters are read in either case. */
    static boolean equal(byte[] octets, int begin, int end, byte[] wanted, boolean folded) {
        return end - begin == wanted.length && standAt(octets, begin, wanted, folded);
    }

    /** Whether {@code octets} begin with {@code head}. */
    static boolean begins(byte[] octets, byte[] head, boolean folded) {
        return head.length <= octets.length && standAt(octets, 0, head, folded);
    }

    /** Position of the first {@code wanted} from {@code at} to {@code end}; -1 if there is none. */
    static int indexOf(byte[] octets, byte[] wanted, int at, int end) {
        for (int found = at; found + wanted.length <= end; found++) {
            if (standAt(octets, found, wanted)) {
                return found;
            }
        }
        return -1;
    }

    /** At most {@code count} octets from offset {@code at}; none if they end earlier. */
    static byte[] atMost(byte[] octets, int at, int count) {
        int begin = Math.min(at, octets.length);
        return Arrays.copyOfRange(octets, begin, Math.min(octets.length, begin + count));
    }
}
