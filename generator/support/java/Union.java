package specwire.generated.java;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.RowFactory;

/** One of several records, told apart by the octets that each begins with: a struct with a column for each. */
public final class Union extends Type {
    /** A record, and the octets (hexadecimal) that it begins with. */
    public static final class Option {
        private final byte[] tag;
        private final Struct struct;

        public Option(String tag, Struct struct) {
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
                return RowFactory.create(columns);
            }
        }
        throw Tags.refuse(place, tags, "tag");
    }
}
