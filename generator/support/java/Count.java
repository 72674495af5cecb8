package specwire.generated.java;

/** How many octets or items something has: a number directly before it, or a hidden number that was kept. */
public final class Count {
    private final Coding coding;
    private final int plain;
    private final Field field;
    private final int register;
    private final int plus;

    private Count(Coding coding, Field field, int register, int plus) {
        this.coding = coding;
        plain = coding != null && coding.isPlain() ? coding.octets() : 0;
        this.field = field;
        this.register = register;
        this.plus = plus;
    }

    /** A number directly before what it counts. */
    public static Count here(Coding coding) {
        return new Count(coding, null, 0, 0);
    }

    /** The number that {@link Keep} has read, less {@code plus}. */
    public static Count kept(Field field, int register, int plus) {
        return new Count(null, field, register, plus);
    }

    /** The number; {@link Cursor#counted} is then its position. */
    long read(Cursor in) {
        if (field == null) {
            in.counted = in.at;
            return plain > 0 ? in.unsigned(plain) : coding.read(in);
        }
        long number = in.number(register);
        in.counted = in.position(register);
        if (plus > 0 && Long.compareUnsigned(number, plus) < 0) {
            enter(in);
            throw in.refuse("range", "at least " + plus, Long.toUnsignedString(number), in.counted);
        }
        return number - plus;
    }

    /** Names the number, if it is another field. */
    void enter(Cursor in) {
        if (in.names && field != null) {
            in.enter(field);
        }
    }

    /** What the number counts in addition. */
    int plus() {
        return plus;
    }
}
