// Written by specwire from generator/support/java/Type.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.types.DataType;

/** What a value is: how it is read from octets, and what Spark is given for it. */
public abstract class Type {
    /** Reads the value at the place and moves behind it; throws {@link Refusal} where it is none. */
    abstract Object read(Place place);

    /** What the value is in Spark; of no use where it is implied. */
    abstract DataType dataType();

    /** Whether the octets follow from the other fields: no column. */
    boolean implied() {
        return false;
    }

    /** Reads a value that has a frame of its own; constants and words fill it. */
    Object readWhole(Place place) {
        Object value = read(place);
        place.endFrame();
        return value;
    }

    /** How many octets the value always has, -1 for others. */
    int fixedSize() {
        return -1;
    }
}
