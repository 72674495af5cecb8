// Written by specwire from generator/support/java/Keyword.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/** One of several words that fill a frame. */
public final class Keyword extends Type {
    private final List<byte[]> options;

    public Keyword(String... options) {
        this.options = Stream.of(options).map(word -> word.getBytes(StandardCharsets.UTF_8)).toList();
    }

    List<byte[]> options() {
        return options;
    }

    @Override
    Object read(Place place) {
        throw new IllegalStateException("a word fills a frame");
    }

    @Override
    Object readWhole(Place place) {
        for (byte[] option : options) {
            if (Arrays.equals(place.frame, option)) {
                return UTF8String.fromBytes(place.frame);
            }
        }
        throw place.refuse("constant", Words.oneOf(options), Words.show(place.frame), 0);
    }

    @Override
    DataType dataType() {
        return DataTypes.StringType;
    }
}
