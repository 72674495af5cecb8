package specwire.generated.java;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;

/** One of several words that fill the frame. */
public final class Word extends Value {
    private final List<byte[]> options;

    public Word(Field field, int column, String... options) {
        super(field, column);
        this.options = Stream.of(options).map(word -> word.getBytes(StandardCharsets.UTF_8)).toList();
    }

    List<byte[]> options() {
        return options;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        for (byte[] option : options) {
            if (Bytes.equal(in.octets, in.at, in.end, option)) {
                in.row.octets(column, in.octets, in.at, option.length);
                in.at = in.end;
                return;
            }
        }
        throw in.refuse("constant", Words.oneOf(options), Words.show(in.octets, in.at, in.end), in.at);
    }
}
