package specwire.generated.java;

/** A value like the one that contains it: its octets, in a column. */
public final class Enclosed extends Value {
    private final int number;

    /** A value like the one around it that has this number. */
    public Enclosed(Field field, int column, int number) {
        super(field, column);
        this.number = number;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        int begin = in.at;
        in.readAgain(number);
        in.row.octets(column, in.octets, begin, in.at - begin);
    }
}
