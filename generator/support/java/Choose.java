package specwire.generated.java;

import java.util.List;
import java.util.stream.Stream;

/** One of several records, told apart by their first octets: a struct with a column for each. */
public final class Choose extends Value implements Enclosing {
    /** A record: its column, and the octets (hexadecimal) with which it begins. */
    public static final class Option {
        private final int column;
        private final byte[] tag;
        private final Struct struct;

        public Option(int column, String tag, Struct struct) {
            this.column = column;
            this.tag = Bytes.parse(tag);
            this.struct = struct;
        }
    }

    private final boolean folded;
    private final Option[] options;
    private final List<byte[]> tags;
    /** The number of the value, if it can contain itself. */
    private int number = Cursor.NONE;

    /** The first option whose tag begins here; with {@code folded}, letters of tags are read in either case. */
    public Choose(Field field, int column, boolean folded, Option... options) {
        super(field, column);
        this.folded = folded;
        this.options = options;
        tags = Stream.of(options).map(option -> option.tag).toList();
    }

    /** Gives a value that can contain itself a number. */
    public Choose enclosing(int own) {
        number = own;
        return this;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        read(in, column);
    }

    @Override
    public void read(Cursor in, int into) {
        if (number >= 0) {
            in.enclose(number, this);
        }
        int chosen = 0;
        while (!in.begins(options[chosen].tag, folded)) {
            chosen++;
            if (chosen == options.length) {
                throw in.refuseTag(tags, "tag", folded);
            }
        }
        long outer = in.row.beginStruct(options.length);
        for (Option option : options) {
            if (option == options[chosen]) {
                option.struct.read(in, option.column);
            } else {
                in.row.setNull(option.column, Store.POINTER);
            }
        }
        in.row.endStruct(into, outer);
    }

    @Override
    int room() {
        return Long.BYTES * (options.length + 1) + options[0].struct.room();
    }
}
