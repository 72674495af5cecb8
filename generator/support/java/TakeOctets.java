package specwire.generated.java;

/** Opaque octets, in a column: at least {@code minimum} and at most {@code maximum} of them. */
public final class TakeOctets extends Value {
    private final Extent extent;
    private final int minimum;
    private final long maximum;

    public TakeOctets(Field field, int column, Extent extent, int minimum, long maximum) {
        super(field, column);
        this.extent = extent;
        this.minimum = minimum;
        this.maximum = maximum;
    }

    @Override
    int octets() {
        return extent.octets();
    }

    @Override
    void read(Cursor in) {
        enter(in);
        int size = extent.read(in);
        if (size < minimum) {
            throw refuse(in, "at least " + Words.octets(minimum), size);
        }
        if (size > maximum) {
            throw refuse(in, "at most " + Words.octets(maximum), size);
        }
        in.row.octets(column, in.octets, in.at, size);
        in.at += size;
    }

    private Refusal refuse(Cursor in, String expected, int size) {
        return in.refuse("length", expected, Integer.toString(size), in.counted);
    }
}
