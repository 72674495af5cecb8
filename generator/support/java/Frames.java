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
        words = isDelimited() && this.delimiter.length == 0 && body[0] instanceof TakeText text && text.isTerminated();
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
            if (words && in.size(in.index) == 1 && in.octets[in.at - 1] == 0) {
                // Without NUL, the frame would be the empty one that ends the list.
                throw in.refuse("length", "text before the NUL", "none", in.at - 1);
            }
            in.index++;
        }
        in.prefix = "";
        in.row.endList(column, outer, from, store);
        in.index += isDelimited() ? 1 : 0;
    }

    private int delimiter(Cursor in) {
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
