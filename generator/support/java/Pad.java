package specwire.generated.java;

/** Octets without meaning. */
public final class Pad extends Operation {
    private final int octets;

    public Pad(Field field, int octets) {
        super(field);
        this.octets = octets;
    }

    @Override
    int octets() {
        return octets;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        in.need(octets);
        in.at += octets;
    }
}
