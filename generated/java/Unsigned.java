// Written by specwire from generator/support/java/Unsigned.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteOrder;
import java.util.stream.LongStream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;

/**
 * An unsigned big-endian integer of 1 to 8 octets; {@code members} are its allowed values, empty for any.
 *
 * <p>Spark has signed types only, so an integer becomes the next wider type, and eight octets a decimal.
 */
public final class Unsigned extends Type {
    private static final int DIGITS = 20;
    private static final VarHandle INTEGERS =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);

    private final int octets;
    private final long[] members;

    public Unsigned(int octets, long... members) {
        this.octets = octets;
        this.members = members;
    }

    @Override
    int fixedSize() {
        return octets;
    }

    /** Whether any value is allowed. */
    boolean takesAny() {
        return members.length == 0;
    }

    /** The Spark value of the octets at {@code at}, which must exist. */
    Object value(byte[] frame, int at) {
        if (octets == 4) {
            return (int) INTEGERS.get(frame, at) & 0xffff_ffffL;
        }
        long value = 0;
        for (int index = at; index < at + octets; index++) {
            value = value << 8 | frame[index] & 0xff;
        }
        return boxed(value, octets);
    }

    @Override
    Object read(Place place) {
        int start = place.at;
        long value = place.unsigned(octets);
        if (members.length > 0 && LongStream.of(members).noneMatch(member -> member == value)) {
            String expected = Words.either(LongStream.of(members).mapToObj(Long::toUnsignedString).toList());
            throw place.refuse("range", expected, Long.toUnsignedString(value), start);
        }
        return boxed(value, octets);
    }

    /** The Spark value of an integer. */
    static Object boxed(long value, int octets) {
        return switch (octets) {
            case 1 -> (Object) (short) value;
            case 2, 3 -> (int) value;
            case 8 -> decimal(value);
            default -> value;
        };
    }

    @Override
    DataType dataType() {
        return switch (octets) {
            case 1 -> DataTypes.ShortType;
            case 2, 3 -> DataTypes.IntegerType;
            case 8 -> DataTypes.createDecimalType(DIGITS, 0);
            default -> DataTypes.LongType;
        };
    }

    private static Decimal decimal(long value) {
        if (value >= 0) {
            return Decimal.apply(value, DIGITS, 0);
        }
        return Decimal.apply(new BigDecimal(new BigInteger(Long.toUnsignedString(value))), DIGITS, 0);
    }
}
