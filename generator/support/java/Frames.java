package specwire.generated.java;

/** Frames with one value each, up to a delimiter or all that remain: a list, in a column. */
public final class Frames extends Part {
    private final int column;
    private final Store store;
    private final byte[] delimiter;
    private final boolean words;

    /**
     * Frames; {@code store} is how the row stores a value, {@code delimiter} the frame that ends them in hexadecimal,
     * null for none.
     */
    public Frames(
            Field field, Presence presence, int column, Store store, String delimiter, Operation... body) {
        super(field, presence, body);
        this.column = column;
        this.store = store;
        this.delimiter = delimiter == null ? null : Bytes.parse(delimiter);
        words = isDelimited() && body[0] instanceof TakeText text && text.isTerminated();
    }

    boolean isDelimited() {
        return delimiter != null;
    }

    @Override
    boolean isRequired() {
        return isDelimited() && super.isRequired();
    }

    @Override
    String missing() {
        return delimiter.length == 0 ? "an empty frame that ends " : "a frame " + Words.show(delimiter) + " that ends ";
    }

    @Override
    void read(Cursor in) {
        int last = isDelimited() ? delimiter(in) : in.count;
        long outer = in.row.beginList();
        int from = in.row.depth();
        for (int number = 0; in.index < last; number++) {
            if (in.names) {
                in.prefix = field.name() + "[" + number + "]";
            }
            open(in);
            in.endFrame();
            if (words && endsWithoutNul(in)) {
                boolean empty = delimiter.length == 0;
                String expected = empty ? "text before the NUL" : "text other than " + Words.show(delimiter);
                throw in.refuse("length", expected, empty ? "none" : Words.show(delimiter), in.begin(in.index));
            }
            in.index++;
        }
        in.prefix = "";
        in.row.endList(column, outer, from, store);
        in.index += isDelimited() ? 1 : 0;
    }

    /** Whether the frame would be the one that ends the list, without the NUL at its end. */
    private boolean endsWithoutNul(Cursor in) {
        int begin = in.begin(in.index);
        int end = begin + in.size(in.index) - 1;
        return end >= begin && in.octets[end] == 0 && Bytes.equal(in.octets, begin, end, delimiter);
    }

    /** The index of the delimiter; the cursor has the path of the list. */
    int delimiter(Cursor in) {
        for (int number = in.index; number < in.count; number++) {
            if (Bytes.equal(in.array(number), in.begin(number), in.begin(number) + in.size(number), delimiter)) {
                return number;
            }
        }
        in.index = in.count;
        throw in.refuse("frames", missing() + in.path, Words.frames(in.count), -1);
    }

    @Override
    void absent(RowWriter row) {
        row.setNull(column, Store.POINTER);
    }

    @Override
    int room() {
        return 3 * Long.BYTES;
    }
}
