// Written by specwire from generator/support/java/PatternSelection.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Messages told apart by patterns of how the first frame begins; the longest match decides.
 *
 * <p>So a message whose name is open matches only if no message with a fixed name does.
 */
final class PatternSelection extends Selection {
    /** A message, and a pattern of it: hexadecimal, and the octets, -1 for any. */
    private record Row(Message message, String pattern, short[] octets) {
        /** Number of octets of the pattern that match, from the first on. */
        int fitting(byte[] frame) {
            for (int at = 0; at < octets.length; at++) {
                if (at == frame.length || octets[at] >= 0 && octets[at] != (frame[at] & 0xff)) {
                    return at;
                }
            }
            return octets.length;
        }

        /** The contiguous octets that the pattern fixes from octet {@code start} on. */
        byte[] word(int start) {
            int end = start;
            while (end < octets.length && octets[end] >= 0) {
                end++;
            }
            byte[] word = new byte[Math.max(end - start, 0)];
            for (int at = 0; at < word.length; at++) {
                word[at] = (byte) octets[start + at];
            }
            return word;
        }
    }

    private final List<Row> rows = new ArrayList<>();

    PatternSelection(List<Message> messages) {
        for (Message message : messages) {
            for (String pattern : message.patterns()) {
                rows.add(new Row(message, pattern, octets(pattern)));
            }
        }
    }

    /** The octets of a pattern, -1 for any octet. */
    static short[] octets(String pattern) {
        short[] octets = new short[pattern.length() / 2];
        for (int at = 0; at < octets.length; at++) {
            String piece = pattern.substring(2 * at, 2 * at + 2);
            octets[at] = piece.equals("??") ? -1 : Short.parseShort(piece, 16);
        }
        return octets;
    }

    @Override
    Message find(Protocol protocol, Object[] frames, String sender) {
        if (frames.length == 0) {
            throw refuse(protocol, null, -1, -1, "frames", "a frame", Words.frames(0), null);
        }
        byte[] frame = (byte[]) frames[0];
        Row longest = null;
        for (Row row : rows) {
            boolean longer = longest == null || row.octets.length > longest.octets.length;
            if (longer && row.fitting(frame) == row.octets.length) {
                longest = row;
            }
        }
        if (longest == null) {
            throw unknown(protocol, frame);
        }
        return longest.message;
    }

    /** Reports where the nearest patterns fail. */
    private Refusal unknown(Protocol protocol, byte[] frame) {
        int at = rows.stream().mapToInt(row -> row.fitting(frame)).max().orElse(0);
        List<Row> nearest = rows.stream().filter(row -> row.fitting(frame) == at).toList();
        Row first = nearest.get(0);
        int start = 0;
        Field field = null;
        int size = -1;
        for (Field next : first.message.parts()[0].fields()) {
            field = next;
            size = sizeOf(field.type(), first.pattern.substring(Math.min(2 * start, first.pattern.length())));
            if (size < 0 || at < start + size) {
                break;
            }
            start += size;
        }
        size = sizeOf(field.type(), first.pattern.substring(Math.min(2 * start, first.pattern.length())));
        List<byte[]> options = new ArrayList<>();
        for (Row row : nearest) {
            byte[] word = row.word(start);
            if (options.stream().noneMatch(option -> Arrays.equals(option, word))) {
                options.add(word);
            }
        }
        boolean open = options.stream().anyMatch(option -> option.length == 0);
        int most = options.stream().mapToInt(option -> option.length).max().orElse(0);
        String expected = Words.oneOf(options);
        String found = Words.show(Bytes.atMost(frame, start, most));
        if (at == frame.length && size > 0 && open) {
            // The pattern allows any octet here; the frame is too short.
            expected = Words.octets(size);
            found = Integer.toString(frame.length - start);
        }
        String kind = at == frame.length ? "length" : "tag";
        return refuse(protocol, field.name(), 0, start, kind, expected, found, field.rule());
    }

    /** Number of octets of a value at this place of a pattern, -1 if it varies. */
    private static int sizeOf(Type type, String pattern) {
        return type instanceof Size size ? size.sizeIn(pattern) : type.fixedSize();
    }
}
