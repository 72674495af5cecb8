package specwire.generated.java;

import java.util.List;
import java.util.stream.Stream;

/** One of several records, told apart by their first octets: a struct with a column for each. */
public final class Choose extends Value {
    /** A record, and the octets (hexadecimal) with which it begins. */
    public static final class Option {
        private final byte[] tag;
        private final Struct struct;

        public Option(String tag, Struct struct) {
            this.tag = Bytes.parse(tag);
            this.struct = struct;
        }
    }

    private final Option[] options;
    private final List<byte[]> tags;

    public Choose(Field field, int column, Option... options) {
        super(field, column);
        this.options = options;
        tags = Stream.of(options).map(option -> option.tag).toList();
    }

    @Override
    void read(Cursor in) {
        enter(in);
        int chosen = 0;
        while (!in.begins(options[chosen].tag)) {
            chosen++;
            if (chosen == options.length) {
                throw in.refuseTag(tags, "tag");
            }
        }
        long outer = in.row.beginStruct(options.length);
        for (int number = 0; number < options.length; number++) {
            if (number == chosen) {
                options[number].struct.read(in, number);
            } else {
                in.row.setNull(number, Store.POINTER);
            }
        }
        in.row.endStruct(column, outer);
    }

    @Override
    int room() {
        return Long.BYTES * (options.length + 1) + options[0].struct.room();
    }
}
