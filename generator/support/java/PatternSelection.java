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
        int fitting(Cursor in, boolean folded) {
            byte[] array = in.array(0);
            int begin = in.begin(0);
            for (int at = 0; at < octets.length; at++) {
                if (at == in.size(0)) {
                    return at;
                }
                byte octet = folded ? Bytes.lower(array[begin + at]) : array[begin + at];
                if (octets[at] >= 0 && octets[at] != (octet & 0xff)) {
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

    PatternSelection(Message... messages) {
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
    Message find(Protocol protocol, Cursor in, String sender) {
        if (in.count == 0) {
            throw refuse(protocol, null, -1, -1, "frames", "a frame", Words.frames(0));
        }
        Row longest = null;
        for (Row row : rows) {
            boolean longer = longest == null || row.octets.length > longest.octets.length;
            if (longer && row.fitting(in, folded) == row.octets.length) {
                longest = row;
            }
        }
        if (longest == null) {
            throw unknown(protocol, in);
        }
        return longest.message;
    }

    /** Reports where the nearest patterns fail. */
    private Refusal unknown(Protocol protocol, Cursor in) {
        byte[] frame = in.frame(0);
        int at = rows.stream().mapToInt(row -> row.fitting(in, folded)).max().orElse(0);
        List<Row> nearest = rows.stream().filter(row -> row.fitting(in, folded) == at).toList();
        Row first = nearest.get(0);
        int start = 0;
        Operation here = null;
        for (Operation operation : operations(first.message.parts()[0].body)) {
            here = operation;
            int size = octets(operation, first.pattern, start);
            if (size < 0 || at < start + size) {
                break;
            }
            start += size;
        }
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
        int size = octets(here, first.pattern, start);
        if (at == frame.length && size > 0 && open) {
            // The pattern allows any octet here; the frame is too short.
            expected = Words.octets(size);
            found = Integer.toString(frame.length - start);
        }
        return refuse(protocol, here.field, 0, start, at == frame.length ? "length" : "tag", expected, found);
    }

    /** The operations of a body, those after a size or an option included. */
    private static List<Operation> operations(Body body) {
        List<Operation> found = new ArrayList<>();
        for (Operation operation : body.operations()) {
            if (operation.field != null && !(operation instanceof Verify || operation instanceof Present)) {
                found.add(operation);
            }
            if (operation.body() != null) {
                found.addAll(operations(operation.body()));
            }
        }
        return found;
    }

    /** Number of octets at this place of a pattern, -1 if it varies. */
    private static int octets(Operation operation, String pattern, int at) {
        String left = pattern.substring(Math.min(2 * at, pattern.length()));
        return operation instanceof Sized sized ? sized.sizeIn(left) : operation.octets();
    }
}
