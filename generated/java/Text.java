// Written by specwire from generator/support/java/Text.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** UTF-8 text. */
public final class Text extends Type {
    private final Span span;
    private final boolean terminated;
    private final int padding;

    public Text(Span span) {
        this(span, false, -1);
    }

    private Text(Span span, boolean terminated, int padding) {
        this.span = span;
        this.terminated = terminated;
        this.padding = padding;
    }

    /** The same text, which may end with NUL. */
    public Text terminated() {
        return new Text(span, true, padding);
    }

    /** The same text, padded with an octet after its content. */
    public Text padded(int octet) {
        return new Text(span, terminated, octet);
    }

    Span span() {
        return span;
    }

    boolean isTerminated() {
        return terminated;
    }

    @Override
    Object read(Place place) {
        span.open(place);
        int begin = place.begin;
        return UTF8String.fromBytes(place.frame, begin, contentEnd(place, begin, place.at) - begin);
    }

    /** Checks the octets of a text; returns where its content ends, without padding and the NUL at its end. */
    int contentEnd(Place place, int begin, int end) {
        byte[] frame = place.frame;
        int stop = end;
        if (padding >= 0) {
            while (stop > begin && (frame[stop - 1] & 0xff) == padding) {
                stop--;
            }
        }
        check(place, begin, stop);
        if (!terminated) {
            return stop;
        }
        stop -= stop > begin && frame[stop - 1] == 0 ? 1 : 0;
        for (int at = begin; at < stop; at++) {
            if (frame[at] == 0) {
                throw place.refuse("text", "text without NUL", "0x00", at);
            }
        }
        return stop;
    }

    /** Refuses octets that are not UTF-8. */
    static void check(Place place, int begin, int end) {
        int fault = Utf8.fault(place.frame, begin, end);
        if (fault >= 0) {
            int size = Utf8.faultSize(place.frame, fault, end);
            throw place.refuse("text", "UTF-8", Words.show(place.frame, fault, fault + size), fault);
        }
    }

    @Override
    int fixedSize() {
        return span.fixedSize();
    }

    @Override
    DataType dataType() {
        return DataTypes.StringType;
    }
}
