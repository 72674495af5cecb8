package specwire.generated.java;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Stream;

/** One of several words that fill the frame. */
public final class Word extends Value {
    private final List<byte[]> options;
    private final boolean folded;

    /** With {@code folded}, letters are read in either case; the value is the option. */
    public Word(Field field, int column, boolean folded, String... options) {
        super(field, column);
        this.folded = folded;
        this.options = Stream.of(options).map(word -> word.getBytes(StandardCharsets.UTF_8)).toList();
    }

    List<byte[]> options() {
        return options;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        for (byte[] option : options) {
            if (Bytes.equal(in.octets, in.at, in.end, option, folded)) {
                in.row.octets(column, option, 0, option.length);
                in.at = in.end;
                return;
            }
        }
        throw in.refuse("constant", Words.oneOf(options), Words.show(in.octets, in.at, in.end), in.at);
    }
}
