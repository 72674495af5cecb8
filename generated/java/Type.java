// Written by specwire from generator/support/java/Type.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.types.DataType;

/** Type of a value: how it is read from octets, and its value in Spark. */
public abstract class Type {
    /** Reads the value at the place and advances past it; throws {@link Refusal} if it is invalid. */
    abstract Object read(Place place);

    /** The Spark type; unused if the value is implied. */
    abstract DataType dataType();

    /** Whether the octets are computed from other fields, so there is no column. */
    boolean implied() {
        return false;
    }

    /** Reads a value that fills a frame. */
    Object readWhole(Place place) {
        Object value = read(place);
        place.endFrame();
        return value;
    }

    /** The fixed number of octets, -1 if it varies. */
    int fixedSize() {
        return -1;
    }
}
