package specwire.generated.java;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;

/** Wording of octets and numbers in errors; the twin of Python's {@code words}. */
final class Words {
    private static final int LONGEST = 40;

    private Words() {}

    /** A number with its noun, in the plural unless it is one. */
    static String numberOf(long number, String thing) {
        return Long.toUnsignedString(number) + " " + thing + (number == 1 ? "" : "s");
    }

    /** A number of octets, up to 2^64 - 1, with its unit. */
    static String octets(long number) {
        return numberOf(number, "octet");
    }

    /** A number of frames with its unit. */
    static String frames(int number) {
        return numberOf(number, "frame");
    }

    /** The alternatives for octets. */
    static String oneOf(List<byte[]> options) {
        return either(options.stream().map(Words::show).toList());
    }

    /** The alternatives for octets at the start of something, in hexadecimal. */
    static String oneStartOf(List<String> starts) {
        return either(starts.stream().map(start -> start.contains("?") ? "0x" + start : show(Bytes.parse(start))).toList());
    }

    /** Words with "or" before the last, and commas between the others. */
    static String either(List<String> words) {
        int last = words.size() - 1;
        return last == 0 ? words.get(0) : String.join(", ", words.subList(0, last)) + " or " + words.get(last);
    }

    /** Octets in readable form, shortened: quoted if they are text, else hexadecimal. */
    static String show(byte[] octets) {
        return show(octets, 0, octets.length);
    }

    /** The same for the octets from {@code begin} up to {@code end}. */
    static String show(byte[] octets, int begin, int end) {
        int count = end - begin;
        if (count == 0) {
            return "nothing";
        }
        if (count > 2 && isPrintable(octets, begin, end)) {
            int shown = count <= LONGEST ? count : LONGEST - 3;
            String text = new String(octets, begin, shown, StandardCharsets.US_ASCII);
            return "'" + text + (count <= LONGEST ? "'" : "...'");
        }
        String shown = "0x" + hex(octets, begin, Math.min(end, begin + 16));
        return count <= 16 ? shown : shown + "... (" + octets(count) + ")";
    }

    /** Octets in hexadecimal. */
    static String hex(byte[] octets, int begin, int end) {
        return HexFormat.of().formatHex(octets, begin, end);
    }

    /** A text as in Python's repr: quoted, with unprintable characters escaped. */
    static String quoted(String text) {
        char quote = text.contains("'") && !text.contains("\"") ? '"' : '\'';
        StringBuilder quoted = new StringBuilder().append(quote);
        text.codePoints().forEach(point -> quoted.append(escaped(point, quote)));
        return quoted.append(quote).toString();
    }

    private static String escaped(int point, char quote) {
        if (point == quote || point == '\\') {
            return "\\" + (char) point;
        }
        if (point == '\n' || point == '\r' || point == '\t') {
            return point == '\n' ? "\\n" : point == '\r' ? "\\r" : "\\t";
        }
        boolean shown = switch (Character.getType(point)) {
            case Character.CONTROL, Character.FORMAT, Character.SURROGATE, Character.PRIVATE_USE,
                    Character.UNASSIGNED, Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR -> false;
            case Character.SPACE_SEPARATOR -> point == ' ';
            default -> true;
        };
        if (shown) {
            return Character.toString(point);
        }
        return String.format(point < 0x100 ? "\\x%02x" : point < 0x10000 ? "\\u%04x" : "\\U%08x", point);
    }

    private static boolean isPrintable(byte[] octets, int begin, int end) {
        for (int at = begin; at < end; at++) {
            if (octets[at] < 0x20 || octets[at] > 0x7e) {
                return false;
            }
        }
        return true;
    }
}
