package specwire.generated.java;

/** Frames with one value each, up to an empty frame or all that remain: a list, in a column. */
public final class Frames extends Part {
    private final int column;
    private final Store store;
    private final boolean delimited;
    private final boolean words;

    /** Frames; {@code store} is how the row stores a value. */
    public Frames(
            Field field, Presence presence, int column, Store store, boolean delimited, Operation... body) {
        super(field, presence, body);
        this.column = column;
        this.store = store;
        this.delimited = delimited;
        words = delimited && body[0] instanceof TakeText text && text.isTerminated();
    }

    boolean isDelimited() {
        return delimited;
    }

    @Override
    boolean isRequired() {
        return delimited && super.isRequired();
    }

    @Override
    String missing() {
        return "an empty frame that ends ";
    }

    @Override
    void read(Cursor in) {
        int last = delimited ? delimiter(in) : in.count;
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
        in.index += delimited ? 1 : 0;
    }

    private static int delimiter(Cursor in) {
        for (int number = in.index; number < in.count; number++) {
            if (in.size(number) == 0) {
                return number;
            }
        }
        in.index = in.count;
        throw in.refuse("frames", "an empty frame that ends " + in.path, Words.frames(in.count), -1);
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
