package specwire.generated.java;

/** Items one after the other: a list, in a column. */
public final class Loop extends Value {
    private static final int GUESSED_ROOM = 64;

    private final Count count;
    private final int minimum;
    private final Store store;
    private final String rule;
    private final byte[] until;
    private final Body body;

    /**
     * Items that the body reads.
     *
     * @param count the number of items; null for up to the end of the body that contains the list
     * @param store how the row stores an item
     * @param rule the grammar's rule for an item
     * @param until the octets, in hexadecimal, before which a list without {@code count} ends; null for the end
     */
    public Loop(
            Field field, int column, Count count, int minimum, Store store, String rule, String until,
            Operation... body) {
        super(field, column);
        this.count = count;
        this.minimum = minimum;
        this.store = store;
        this.rule = rule;
        this.until = until == null ? null : Bytes.parse(until);
        this.body = new Body(body);
    }

    @Override
    void read(Cursor in) {
        enter(in);
        int start = in.at;
        int wanted = count == null ? -1 : number(in);
        String prefix = in.prefix;
        String path = in.path;
        RowWriter row = in.row;
        long outer = row.beginList();
        int from = row.depth();
        for (int number = 0; wanted < 0 ? continues(in) : number < wanted; number++) {
            if (in.names) {
                in.prefix = path + "[" + number + "]";
            }
            body.read(in);
        }
        if (in.names) {
            in.prefix = prefix;
            in.enter(field);
            in.rule = rule;
        }
        check(in, row.depth() - from, start);
        row.endList(column, outer, from, store);
    }

    private boolean continues(Cursor in) {
        return in.at < in.end && (until == null || !in.begins(until));
    }

    /** The number of items, which have at least one octet each. */
    private int number(Cursor in) {
        long number = count.read(in);
        int left = in.left();
        if (Long.compareUnsigned(number, left) > 0) {
            count.enter(in);
            String most = "at most " + left + " entries in " + Words.octets(left);
            throw in.refuse("count", most, Long.toUnsignedString(number), in.counted);
        }
        check(in, (int) number, in.counted);
        return (int) number;
    }

    private void check(Cursor in, int number, int start) {
        if (number < minimum) {
            throw in.refuse("count", "at least " + minimum, Integer.toString(number), start);
        }
    }

    @Override
    int room() {
        return GUESSED_ROOM;
    }
}
