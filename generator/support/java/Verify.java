package specwire.generated.java;

import java.io.ByteArrayOutputStream;

/** Check that a number is the checksum of the octets between pairs of marks. */
public final class Verify extends Operation {
    private final int register;
    private final int octets;
    private final Checksum checksum;
    private final int[] marks;

    /** The number in a register, of so many octets; {@code marks} are registers, two for each range. */
    public Verify(Field field, int register, int octets, Checksum checksum, int... marks) {
        super(field);
        this.register = register;
        this.octets = octets;
        this.checksum = checksum;
        this.marks = marks;
    }

    @Override
    void read(Cursor in) {
        ByteArrayOutputStream covered = new ByteArrayOutputStream();
        for (int mark = 0; mark < marks.length; mark += 2) {
            int begin = in.position(marks[mark]);
            covered.write(in.octets, begin, in.position(marks[mark + 1]) - begin);
        }
        long found = in.number(register);
        long right = checksum.of(covered.toByteArray());
        if (found != right) {
            enter(in);
            throw in.refuse("checksum", word(right), word(found), in.position(register));
        }
    }

    private String word(long number) {
        return String.format("0x%0" + 2 * octets + "x", number);
    }
}
