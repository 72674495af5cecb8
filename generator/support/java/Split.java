package specwire.generated.java;

/** A name and a value in one text, split at its first or last {@code =}: an item of a list. */
public final class Split extends Operation {
    private final TakeText text;
    private final boolean last;

    public Split(TakeText text, boolean last) {
        super(text.field);
        this.text = text;
        this.last = last;
    }

    @Override
    void read(Cursor in) {
        int size = text.open(in);
        int begin = in.at;
        int end = begin + size;
        // A fault is assigned to its side of the octet.
        int equals = equalsSign(in.octets, begin, end);
        in.divided = equals;
        int stop = text.contentEnd(in, end);
        if (equals < 0) {
            throw in.refuse("text", "name=value", Words.show(in.octets, begin, end), begin);
        }
        in.divided = -1;
        long outer = in.row.beginStruct(2);
        in.row.octets(0, in.octets, begin, equals - begin);
        in.row.octets(1, in.octets, equals + 1, stop - equals - 1);
        in.row.endStruct(ITEM, outer);
        in.at = end;
    }

    private int equalsSign(byte[] octets, int begin, int end) {
        int step = last ? -1 : 1;
        for (int at = last ? end - 1 : begin; at >= begin && at < end; at += step) {
            if (octets[at] == '=') {
                return at;
            }
        }
        return -1;
    }
}
