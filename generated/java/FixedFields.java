// Written by specwire from generator/support/java/FixedFields.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

/**
 * Fields of a frame whose values have fixed offsets, read at once.
 *
 * <p>It only detects that something is wrong; {@link Fields} then finds the fault, field by field.
 */
final class FixedFields {
    private final int size;
    private final Constant[] constants;
    private final int[] constantOffsets;
    private final Unsigned[] integers;
    private final int[] integerOffsets;

    private FixedFields(Field[] fields) {
        int constantCount = 0;
        int integerCount = 0;
        for (Field field : fields) {
            constantCount += field.type() instanceof Constant ? 1 : 0;
            integerCount += field.type() instanceof Unsigned ? 1 : 0;
        }
        constants = new Constant[constantCount];
        constantOffsets = new int[constantCount];
        integers = new Unsigned[integerCount];
        integerOffsets = new int[integerCount];
        int at = 0;
        constantCount = 0;
        integerCount = 0;
        for (Field field : fields) {
            if (field.type() instanceof Constant constant) {
                constantOffsets[constantCount] = at;
                constants[constantCount++] = constant;
            } else if (field.type() instanceof Unsigned integer) {
                integerOffsets[integerCount] = at;
                integers[integerCount++] = integer;
            }
            at += field.type().fixedSize();
        }
        size = at;
    }

    /** The fields of a frame if all are constants, integers and padding, else null. */
    static FixedFields of(Field[] fields) {
        for (Field field : fields) {
            Type type = field.type();
            boolean fixed = type instanceof Constant || type instanceof Padding
                    || type instanceof Unsigned integer && integer.takesAny();
            if (!fixed || field.isOptional()) {
                return null;
            }
        }
        return new FixedFields(fields);
    }

    /** Reads the frame at the place into {@code values}; returns whether it is valid. */
    boolean read(Place place, Object[] values, int column) {
        byte[] frame = place.frame;
        if (frame.length != size) {
            return false;
        }
        for (int number = 0; number < constants.length; number++) {
            if (!Bytes.standAt(frame, constantOffsets[number], constants[number].octets())) {
                return false;
            }
        }
        for (int number = 0; number < integers.length; number++) {
            values[column + number] = integers[number].value(frame, integerOffsets[number]);
        }
        place.at = size;
        return true;
    }
}
