// Written by specwire from generator/support/java/Padding.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** Octets without meaning. */
public final class Padding extends Type {
    private final int octets;

    public Padding(int octets) {
        this.octets = octets;
    }

    @Override
    boolean implied() {
        return true;
    }

    @Override
    int fixedSize() {
        return octets;
    }

    @Override
    Object read(Place place) {
        place.need(octets);
        place.at += octets;
        return null;
    }

    @Override
    DataType dataType() {
        return DataTypes.NullType;
    }
}
