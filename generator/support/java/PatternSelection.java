package specwire.generated.java;

import java.util.ArrayList;
import java.util.List;

/**
 * Messages told apart by patterns of how the first frame begins; the longest match decides.
 *
 * <p>So a message whose name is open matches only if no message with a fixed name does.
 */
final class PatternSelection extends Selection {
    /** A message, and a pattern of it: hexadecimal, the octets, and the masks of their known bits. */
    private record Row(Message message, String pattern, byte[] octets, byte[] masks) {
        /** Number of octets of the pattern that match, from the first on. */
        int fitting(Cursor in, boolean folded) {
            byte[] array = in.array(0);
            int begin = in.begin(0);
            for (int at = 0; at < octets.length; at++) {
                if (at == in.size(0)) {
                    return at;
                }
                byte octet = folded ? Bytes.lower(array[begin + at]) : array[begin + at];
                if ((octet & masks[at]) != octets[at]) {
                    return at;
                }
            }
            return octets.length;
        }
    }

    private final List<Row> rows = new ArrayList<>();

    PatternSelection(Message... messages) {
        for (Message message : messages) {
            for (String pattern : message.patterns()) {
                rows.add(new Row(message, pattern, octets(pattern), masks(pattern)));
            }
        }
    }

    /** The octets of a pattern, with 0 for any half octet. */
    static byte[] octets(String pattern) {
        return Bytes.parse(pattern.replace('?', '0'));
    }

    /** The masks of the known bits of a pattern's octets. */
    static byte[] masks(String pattern) {
        return Bytes.parse(pattern.replaceAll("[^?]", "f").replace('?', '0'));
    }

    /** The octets that a pattern fixes from its first octet on; a half octet if that is all. */
    static String start(String pattern) {
        int open = pattern.indexOf('?');
        if (open < 0) {
            return pattern;
        }
        boolean half = open < 2 && !pattern.startsWith("??");
        return pattern.substring(0, half ? 2 : open / 2 * 2);
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
        int skipped = 2 * start;
        List<String> options = nearest.stream()
                .map(row -> start(row.pattern.substring(Math.min(skipped, row.pattern.length()))))
                .distinct()
                .toList();
        boolean open = options.stream().anyMatch(String::isEmpty);
        int most = options.stream().mapToInt(String::length).max().orElse(0) / 2;
        String expected = Words.oneStartOf(options);
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
