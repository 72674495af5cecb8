// Written by specwire from generator/support/java/Constant.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** Octets that are always the same. */
public final class Constant extends Type {
    private final byte[] octets;
    private final String words;

    /** The octets in hexadecimal, and how errors print them. */
    public Constant(String hex, String words) {
        octets = Hex.octets(hex);
        this.words = words;
    }

    byte[] octets() {
        return octets;
    }

    @Override
    boolean implied() {
        return true;
    }

    @Override
    int fixedSize() {
        return octets.length;
    }

    @Override
    Object read(Place place) {
        if (!place.begins(octets)) {
            throw refuse(place);
        }
        place.at += octets.length;
        return null;
    }

    @Override
    Object readWhole(Place place) {
        if (!Arrays.equals(place.frame, octets)) {
            throw place.refuse("constant", words, Words.show(place.frame), 0);
        }
        return null;
    }

    private Refusal refuse(Place place) {
        int end = Math.min(place.end, place.at + octets.length);
        byte[] found = Arrays.copyOfRange(place.frame, place.at, end);
        if (found.length < octets.length && Bytes.begins(octets, found)) {
            String wanted = Words.octets(octets.length);
            return place.refuse("length", wanted, Integer.toString(found.length), place.at);
        }
        int length = lengthSize();
        if (length == 0 || length == octets.length) {
            return place.refuse("constant", words, Words.show(found), place.at);
        }
        if (found.length >= length && Arrays.equals(found, 0, length, octets, 0, length)) {
            return place.refuse("constant", words, Words.show(found, length, found.length), place.at);
        }
        String expected = "0x" + Words.hex(octets, 0, octets.length) + " (" + words + ")";
        return place.refuse("constant", expected, "0x" + Words.hex(found, 0, found.length), place.at);
    }

    /** Number of octets of the length prefix in front of the constant's text, 0 without a prefix. */
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
        int length = octets.length - text.length;
        return length >= 0 && Bytes.standAt(octets, length, text) ? length : octets.length;
    }

    @Override
    DataType dataType() {
        return DataTypes.NullType;
    }
}
