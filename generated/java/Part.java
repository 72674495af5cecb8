// Written by specwire from generator/support/java/Part.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;

/** A part of a message: a frame, a stack of frames up to an empty one, or all remaining frames. */
public abstract class Part {
    private final Presence presence;

    Part(Presence presence) {
        this.presence = presence;
    }

    final Presence presence() {
        return presence;
    }

    /** The fields of the part. */
    abstract Field[] fields();

    /** Number of columns of the part. */
    abstract int columns();

    /** Columns of the part: one for each field of a frame, else one for all frames. */
    final List<StructField> dataTypes() {
        List<StructField> found = new ArrayList<>();
        for (Field field : fields()) {
            if (!field.implied()) {
                DataType type = field.type().dataType();
                boolean one = this instanceof Frame;
                found.add(Columns.column(field.name(), one ? type : DataTypes.createArrayType(type)));
            }
        }
        return found;
    }

    /** Names the part for errors. */
    abstract void enter(Place place);

    /** Reads the part, whose first frame is there, into {@code values}, from {@code column} on. */
    abstract void read(Place place, Object[] values, int column);

    /** What a message lacks that ends before the part. */
    abstract String missing();

    /** Reads the frame of that number in a part of several as a value. */
    static Object element(Place place, Field field, int number) {
        place.enter(field, place.told ? field.name() + "[" + number + "]" : field.name());
        place.open();
        return field.type().readWhole(place);
    }
}
