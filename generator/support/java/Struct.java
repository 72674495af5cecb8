package specwire.generated.java;

/** A record: operations whose columns are those of a struct. */
public final class Struct {
    private final String rule;
    private final int columns;
    private final Body body;
    /** Whether a number in the body says where it ends. */
    private final boolean sized;

    /** A record; {@code rule} is its grammar rule, null if it has none. */
    public Struct(String rule, int columns, Operation... body) {
        this.rule = rule;
        this.columns = columns;
        this.body = new Body(body);
        sized = this.body.isSized();
    }

    /** Reads the record into a column; the cursor has the path of the record. */
    void read(Cursor in, int column) {
        long outer = in.row.beginStruct(Math.max(columns, 1));
        if (in.names) {
            named(in);
        } else {
            bounded(in, null, null);
        }
        if (columns == 0) {
            in.row.number(0, Store.BOOLEAN, 1);
        }
        in.row.endStruct(column, outer);
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
        in.start = in.at;
        body.read(in);
        if (sized && in.at < in.end) {
            in.path = path;
            in.rule = ownRule;
            in.divided = -1;
            throw in.refuse("trailing", "the end of " + path, Words.numberOf(in.left(), "more octet"), in.at);
        }
        in.start = start;
        in.end = end;
    }

    int room() {
        return body.room() + Long.BYTES * (columns + 1);
    }
}
