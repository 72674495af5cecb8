// Written by specwire from generator/support/java/Columns.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Spark columns of decoded messages, as in the package's {@code schema.DECODED}. */
final class Columns {
    private Columns() {}

    /** A nullable column. */
    static StructField column(String name, DataType type) {
        return DataTypes.createStructField(name, type, true);
    }

    /** The columns of all messages of a protocol. */
    static StructType decoded(List<Message> messages) {
        List<StructField> found = new ArrayList<>();
        found.add(column("_message", DataTypes.StringType));
        found.add(column("_error", error()));
        found.add(column("_frames", DataTypes.createArrayType(DataTypes.BinaryType)));
        for (Message message : messages) {
            List<StructField> fields = Stream.of(message.parts()).flatMap(part -> part.dataTypes().stream()).toList();
            found.add(column(message.className(), struct(fields)));
        }
        found.add(column("_octets", DataTypes.LongType));
        return DataTypes.createStructType(found);
    }

    /** The struct of a record. */
    static StructType struct(Field[] fields) {
        return struct(Stream.of(fields)
                .filter(field -> !field.implied())
                .map(field -> column(field.name(), field.type().dataType()))
                .toList());
    }

    private static StructType struct(List<StructField> fields) {
        // A struct needs at least one field.
        return DataTypes.createStructType(fields.isEmpty() ? List.of(column("_present", DataTypes.BooleanType)) : fields);
    }

    private static StructType error() {
        return DataTypes.createStructType(List.of(
                column("message", DataTypes.StringType),
                column("field", DataTypes.StringType),
                column("frame", DataTypes.IntegerType),
                column("offset", DataTypes.LongType),
                column("kind", DataTypes.StringType),
                column("text", DataTypes.StringType)));
    }
}
