package specwire.generated.java;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Octets that are always the same. */
public final class Expect extends Operation {
    private final byte[] wanted;
    /** The octets as a number; they are compared as one if there are at most eight. */
    private final long number;
    private final String words;
    private final boolean folded;

    /** The octets in hexadecimal, and how errors print them. */
    public Expect(Field field, String hex, String words) {
        this(field, hex, words, false);
    }

    /** The same; with {@code folded}, letters are read in either case. */
    public Expect(Field field, String hex, String words, boolean folded) {
        super(field);
        this.folded = folded;
        wanted = Bytes.parse(hex);
        number = wanted.length > Long.BYTES ? 0 : Bytes.number(wanted, 0, wanted.length);
        this.words = words;
    }

    byte[] wanted() {
        return wanted;
    }

    boolean isFolded() {
        return folded;
    }

    @Override
    int octets() {
        return wanted.length;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        boolean there = folded || wanted.length > Long.BYTES
                ? in.begins(wanted, folded)
                : wanted.length <= in.left() && Bytes.number(in.octets, in.at, wanted.length) == number;
        if (!there) {
            throw refuse(in);
        }
        in.at += wanted.length;
    }

    /** Reads octets that fill their frame. */
    void readFrame(Cursor in) {
        enter(in);
        if (!Bytes.equal(in.octets, in.at, in.end, wanted, folded)) {
            throw in.refuse("constant", words, Words.show(in.octets, in.at, in.end), in.at);
        }
        in.at = in.end;
    }

    private Refusal refuse(Cursor in) {
        byte[] found = Arrays.copyOfRange(in.octets, in.at, Math.min(in.end, in.at + wanted.length));
        if (found.length < wanted.length && Bytes.begins(wanted, found, folded)) {
            return in.refuse("length", Words.octets(wanted.length), Integer.toString(found.length), in.at);
        }
        int length = lengthSize();
        if (length == 0 || length == wanted.length) {
            return in.refuse("constant", words, Words.show(found), in.at);
        }
        if (found.length >= length && Bytes.begins(found, Arrays.copyOf(wanted, length), folded)) {
            return in.refuse("constant", words, Words.show(found, length, found.length), in.at);
        }
        String expected = "0x" + Words.hex(wanted, 0, wanted.length) + " (" + words + ")";
        return in.refuse("constant", expected, "0x" + Words.hex(found, 0, found.length), in.at);
    }

    /** Number of octets of the length in front of the constant's text, 0 without a length. */
    private int lengthSize() {
        int begin = 0;
        int end = words.length();
        while (begin < end && words.charAt(begin) == '\'') {
            begin++;
        }
        while (begin < end && words.charAt(end - 1) == '\'') {
            end--;
        }
        byte[] text = words.substring(begin, end).getBytes(StandardCharsets.UTF_8);
        int length = wanted.length - text.length;
        return length >= 0 && Bytes.standAt(wanted, length, text) ? length : wanted.length;
    }
}
