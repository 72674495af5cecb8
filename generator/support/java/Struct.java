package specwire.generated.java;

/** A record: operations whose columns are those of a struct. */
public final class Struct implements Enclosing {
    private final String rule;
    private final int columns;
    private final Body body;
    private final boolean pair;
    /** The number of the record, if it can contain itself. */
    private int number = Cursor.NONE;

    /** A record; {@code rule} is its grammar rule, null if it has none. */
    public Struct(String rule, int columns, Operation... body) {
        this(rule, columns, false, body);
    }

    private Struct(String rule, int columns, boolean pair, Operation... body) {
        this.rule = rule;
        this.columns = columns;
        this.pair = pair;
        this.body = new Body(body);
    }

    /** A name and a value, which are no record for the limit of records inside each other. */
    public static Struct ofPair(Operation... body) {
        return new Struct(null, 2, true, body);
    }

    /** Gives a record that can contain itself a number. */
    public Struct enclosing(int own) {
        number = own;
        return this;
    }

    /** Reads the record into a column; the cursor has the path of the record. */
    @Override
    public void read(Cursor in, int column) {
        if (!pair) {
            in.descend();
        }
        if (number >= 0) {
            in.enclose(number, this);
        }
        long outer = in.row.beginStruct(Math.max(columns, 1));
        if (in.names) {
            named(in);
        } else {
            bounded(in, "", null);
        }
        if (columns == 0) {
            in.row.number(0, Store.BOOLEAN, 1);
        }
        in.row.endStruct(column, outer);
        if (!pair) {
            in.ascend();
        }
    }

    private void named(Cursor in) {
        String prefix = in.prefix;
        String path = in.path;
        String outerRule = in.rule;
        in.prefix = path + ".";
        bounded(in, path, rule == null ? outerRule : rule);
        in.prefix = prefix;
        in.path = path;
        in.rule = outerRule;
    }

    private void bounded(Cursor in, String path, String ownRule) {
        int start = in.start;
        int end = in.end;
        boolean sized = in.sized;
        in.start = in.at;
        in.sized = false;
        body.read(in);
        if (in.sized && in.at < in.end) {
            in.path = path;
            in.rule = ownRule;
            in.divided = -1;
            throw in.refuse("trailing", "the end of " + path, Words.numberOf(in.left(), "more octet"), in.at);
        }
        in.sized = sized;
        in.start = start;
        in.end = end;
    }

    int room() {
        return body.room() + Long.BYTES * (columns + 1);
    }
}
