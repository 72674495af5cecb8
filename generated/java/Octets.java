// Written by specwire from generator/support/java/Octets.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** Opaque octets: at least {@code minimum} and at most {@code maximum} of them. */
public final class Octets extends Type {
    private final Span span;
    private final int minimum;
    private final long maximum;

    public Octets(Span span) {
        this(span, 0);
    }

    public Octets(Span span, int minimum) {
        this(span, minimum, Long.MAX_VALUE);
    }

    public Octets(Span span, int minimum, long maximum) {
        this.span = span;
        this.minimum = minimum;
        this.maximum = maximum;
    }

    @Override
    int fixedSize() {
        return span.fixedSize();
    }

    @Override
    Object read(Place place) {
        int start = place.at;
        span.open(place);
        int size = place.at - place.begin;
        if (size < minimum) {
            throw place.refuse("length", "at least " + Words.octets(minimum), Integer.toString(size), start);
        }
        if (size > maximum) {
            throw place.refuse("length", "at most " + Words.octets(maximum), Integer.toString(size), start);
        }
        return Bytes.slice(place.frame, place.begin, place.at);
    }

    @Override
    DataType dataType() {
        return DataTypes.BinaryType;
    }
}
