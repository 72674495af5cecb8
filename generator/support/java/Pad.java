package specwire.generated.java;

/** Octets without meaning. */
public final class Pad extends Operation {
    private final int octets;
    private final int multiple;

    /** As many octets, or as it takes from the start of the body to a multiple; the other number is 0. */
    public Pad(Field field, int octets, int multiple) {
        super(field);
        this.octets = octets;
        this.multiple = multiple;
    }

    @Override
    int octets() {
        return multiple > 0 ? -1 : octets;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        int size = multiple > 0 ? Math.floorMod(in.start - in.at, multiple) : octets;
        in.need(size);
        in.at += size;
    }
}
