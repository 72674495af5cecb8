// Written by specwire from generator/support/java/Union.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;

/** One of several records, told apart by their first octets: a struct with a column for each. */
public final class Union extends Type {
    /** A record: its name, the octets (hexadecimal) that it begins with, its fields. */
    public static final class Option {
        private final String name;
        private final byte[] tag;
        private final Struct struct;

        public Option(String name, String tag, Struct struct) {
            this.name = name;
            this.tag = Hex.octets(tag);
            this.struct = struct;
        }
    }

    private final Option[] options;
    private final List<byte[]> tags;

    public Union(Option... options) {
        this.options = options;
        tags = Stream.of(options).map(option -> option.tag).toList();
    }

    @Override
    Object read(Place place) {
        for (int number = 0; number < options.length; number++) {
            if (place.begins(options[number].tag)) {
                Object[] columns = new Object[options.length];
                columns[number] = options[number].struct.read(place);
                return new GenericInternalRow(columns);
            }
        }
        throw Tags.refuse(place, tags, "tag");
    }

    @Override
    DataType dataType() {
        return DataTypes.createStructType(Stream.of(options)
                .map(option -> Columns.column(option.name, option.struct.dataType()))
                .toArray(StructField[]::new));
    }
}
