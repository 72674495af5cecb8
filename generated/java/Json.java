// Written by specwire from generator/support/java/Json.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** UTF-8 JSON text up to the end of the run; its content is not parsed. */
public final class Json extends Type {
    @Override
    Object read(Place place) {
        int begin = place.at;
        Text.check(place, begin, place.end);
        place.at = place.end;
        return UTF8String.fromBytes(place.frame, begin, place.end - begin);
    }

    @Override
    DataType dataType() {
        return DataTypes.StringType;
    }
}
