package specwire.generated.java;

import java.util.stream.LongStream;

/** How a number is written. */
public abstract class Coding {
    private Coding() {}

    /** Reads a number and advances past it: an integer, or the bits of a number with a point. */
    abstract long read(Cursor in);

    /** The fixed number of octets, -1 if it varies. */
    abstract int octets();

    /** A big-endian unsigned integer of 1 to 8 octets; {@code members} are its allowed values, empty for any. */
    public static Coding unsigned(int octets, long... members) {
        return new Coding() {
            @Override
            long read(Cursor in) {
                int start = in.at;
                long value = in.unsigned(octets);
                if (members.length > 0 && LongStream.of(members).noneMatch(member -> member == value)) {
                    String expected = Words.either(
                            LongStream.of(members).mapToObj(Long::toUnsignedString).toList());
                    throw in.refuse("range", expected, Long.toUnsignedString(value), start);
                }
                return value;
            }

            @Override
            int octets() {
                return octets;
            }
        };
    }
}
