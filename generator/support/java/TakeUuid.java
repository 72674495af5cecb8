package specwire.generated.java;

import java.nio.charset.StandardCharsets;

/** A UUID of 16 octets, in a column of text. */
public final class TakeUuid extends Value {
    private static final int OCTETS = 16;
    /** Order of the octets of which the first three parts are little-endian. */
    private static final int[] LITTLE = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    private static final byte[] DIGITS = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

    private final boolean little;

    public TakeUuid(Field field, int column, boolean little) {
        super(field, column);
        this.little = little;
    }

    @Override
    int octets() {
        return OCTETS;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        in.need(OCTETS);
        byte[] text = new byte[36];
        int end = 0;
        for (int number = 0; number < OCTETS; number++) {
            if (number >= 4 && number <= 10 && number % 2 == 0) {
                text[end++] = '-';
            }
            int octet = in.octets[in.at + (little ? LITTLE[number] : number)] & 0xff;
            text[end++] = DIGITS[octet >> 4];
            text[end++] = DIGITS[octet & 0xf];
        }
        in.row.octets(column, text, 0, end);
        in.at += OCTETS;
    }

    @Override
    int room() {
        return 40;
    }
}
