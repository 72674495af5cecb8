package specwire.generated.java;

import java.math.BigInteger;
import java.util.List;
import java.util.stream.LongStream;

/** How a number is written. */
public abstract class Coding {
    private Coding() {}

    /** Reads a number and advances past it: an integer of 64 bits, or the bits of a floating-point number. */
    abstract long read(Cursor in);

    /** The fixed number of octets, -1 if it varies. */
    int octets() {
        return -1;
    }

    /** Whether the number is an unsigned big-endian integer of any value. */
    boolean isPlain() {
        return false;
    }

    /** An unsigned big-endian integer of 1 to 8 octets. */
    public static Coding unsigned(int octets) {
        return new Coding() {
            @Override
            long read(Cursor in) {
                return in.unsigned(octets);
            }

            @Override
            int octets() {
                return octets;
            }

            @Override
            boolean isPlain() {
                return true;
            }
        };
    }

    /** An integer of 1 to 8 octets; {@code members} are its allowed values, empty for any. */
    public static Coding integer(int octets, boolean little, boolean signed, long... members) {
        int unused = Long.SIZE - Byte.SIZE * octets;
        return new Coding() {
            @Override
            long read(Cursor in) {
                int start = in.at;
                long value = in.unsigned(octets);
                if (little) {
                    value = Long.reverseBytes(value << unused);
                }
                if (signed) {
                    value = value << unused >> unused;
                }
                if (members.length > 0) {
                    check(in, value, start);
                }
                return value;
            }

            private void check(Cursor in, long value, int start) {
                if (LongStream.of(members).noneMatch(member -> member == value)) {
                    List<String> words = LongStream.of(members).mapToObj(this::word).toList();
                    throw in.refuse("range", Words.either(words), word(value), start);
                }
            }

            private String word(long value) {
                return signed ? Long.toString(value) : Long.toUnsignedString(value);
            }

            @Override
            int octets() {
                return octets;
            }
        };
    }

    /** Groups of 7 bits in 1 to {@code maximum} octets; the high bit is set in all but the last. */
    public static Coding varint(boolean little, int maximum, boolean zigzag, boolean complement) {
        return new Coding() {
            @Override
            long read(Cursor in) {
                int most = Math.min(maximum, in.left());
                int size = 1;
                while (size <= most && in.octets[in.at + size - 1] < 0) {
                    size++;
                }
                if (size > most) {
                    throw most < maximum
                            ? in.refuse("length", Words.octets(most + 1L), Integer.toString(most), in.at)
                            : refuse(in, "a number of at most " + Words.octets(maximum), most);
                }
                BigInteger value = value(in, size);
                if (value.bitLength() > (complement ? Long.SIZE - 1 : Long.SIZE)) {
                    throw refuse(in, "a number of at most 64 bits", size);
                }
                in.at += size;
                long bits = value.longValue();
                return zigzag ? bits >>> 1 ^ -(bits & 1) : bits;
            }

            private BigInteger value(Cursor in, int size) {
                BigInteger value = BigInteger.ZERO;
                for (int number = 0; number < size; number++) {
                    int place = in.at + (little ? size - 1 - number : number);
                    value = value.shiftLeft(7).or(BigInteger.valueOf(in.octets[place] & 0x7f));
                }
                boolean negative = complement && value.testBit(7 * size - 1);
                return negative ? value.subtract(BigInteger.ONE.shiftLeft(7 * size)) : value;
            }

            private Refusal refuse(Cursor in, String expected, int size) {
                return in.refuse("range", expected, Words.show(in.octets, in.at, in.at + size), in.at);
            }
        };
    }

    /** Digits as text, up to the first octet that is none; a signed number may have {@code -} in front. */
    public static Coding digits(int base, int minimum, int maximum, boolean signed) {
        return new Coding() {
            @Override
            long read(Cursor in) {
                int begin = in.at + (signed && in.left() > 0 && in.octets[in.at] == '-' ? 1 : 0);
                int end = begin;
                while (end < in.end && end - begin < maximum && isDigit(in.octets[end])) {
                    end++;
                }
                if (end - begin < minimum) {
                    int stop = Math.min(in.end, in.at + maximum + (signed ? 1 : 0));
                    String expected = "at least " + Words.numberOf(minimum, "digit");
                    String found = Words.show(in.octets, in.at, stop);
                    throw in.refuse(end == stop ? "length" : "text", expected, found, in.at);
                }
                BigInteger value = new BigInteger(Bytes.ascii(in.octets, begin, end), base);
                boolean negative = begin > in.at;
                BigInteger number = negative ? value.negate() : value;
                if (number.bitLength() > (signed ? Long.SIZE - 1 : Long.SIZE) || negative && value.signum() == 0) {
                    String expected = value.signum() == 0 ? "0 without a sign" : "a number of at most 64 bits";
                    throw in.refuse("range", expected, Words.show(in.octets, in.at, end), in.at);
                }
                in.at = end;
                return number.longValue();
            }

            private boolean isDigit(byte octet) {
                return octet >= 0 && Character.digit(octet, base) >= 0;
            }
        };
    }
}
