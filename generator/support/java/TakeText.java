package specwire.generated.java;

/** UTF-8 text, in a column. */
public final class TakeText extends Value {
    private final Extent extent;
    private final boolean terminated;
    private final int padding;

    /** A text that may end with NUL if {@code terminated}; {@code padding} is the octet that fills it, -1 for none. */
    public TakeText(Field field, int column, Extent extent, boolean terminated, int padding) {
        super(field, column);
        this.extent = extent;
        this.terminated = terminated;
        this.padding = padding;
    }

    boolean isTerminated() {
        return terminated;
    }

    @Override
    int octets() {
        return extent.octets();
    }

    @Override
    void read(Cursor in) {
        int size = open(in);
        in.row.octets(column, in.octets, in.at, contentEnd(in, in.at + size) - in.at);
        in.at += size;
    }

    /** The number of octets of the text, its padding included. */
    int open(Cursor in) {
        enter(in);
        return extent.read(in);
    }

    /** Checks a text up to {@code end}; returns where its content ends, without padding and the NUL at its end. */
    int contentEnd(Cursor in, int end) {
        byte[] octets = in.octets;
        int stop = end;
        while (padding >= 0 && stop > in.at && (octets[stop - 1] & 0xff) == padding) {
            stop--;
        }
        Utf8.check(in, in.at, stop);
        if (terminated) {
            stop -= stop > in.at && octets[stop - 1] == 0 ? 1 : 0;
            for (int at = in.at; at < stop; at++) {
                if (octets[at] == 0) {
                    throw in.refuse("text", "text without NUL", "0x00", at);
                }
            }
        }
        return stop;
    }
}
