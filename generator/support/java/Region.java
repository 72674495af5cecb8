package specwire.generated.java;

/** Operations on exactly as many octets as a number says. */
public final class Region extends Operation {
    private final Count count;
    private final Body body;

    public Region(Count count, Operation... body) {
        super(null);
        this.count = count;
        this.body = new Body(body);
    }

    @Override
    void read(Cursor in) {
        long size = count.read(in);
        int left = in.left();
        if (Long.compareUnsigned(size, left) > 0) {
            count.enter(in);
            String most = "at most " + (left + (long) count.plus()) + ", the number of octets left";
            throw in.refuse("length", most, Long.toUnsignedString(size + count.plus()), in.counted);
        }
        int start = in.start;
        int end = in.end;
        in.start = in.at;
        in.end = in.at + (int) size;
        int own = in.end;
        body.read(in);
        if (in.at < own) {
            count.enter(in);
            String expected = "the end of the octets that " + in.path + " counts";
            throw in.refuse("trailing", expected, Words.numberOf(own - in.at, "more octet"), in.at);
        }
        in.start = start;
        in.end = end;
    }

    @Override
    Body body() {
        return body;
    }

    @Override
    void absent(RowWriter row) {
        body.absent(row);
    }

    @Override
    int room() {
        return body.room();
    }
}
