package specwire.generated.java;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Messages told apart by the octets at selectors.
 *
 * <p>If no message matches, the constants with which all messages begin are checked first: a foreign signature is a
 * different fault than an unknown number after the right signature.
 */
final class TagSelection extends Selection {
    /** A message with one of its tags, and the next of those with the same hash. */
    private record Row(Tag tag, Message message, Row next) {}

    /** A constant that a selector covers, and its position. */
    private record Covered(Field field, int frame, int offset, List<byte[]> spellings, boolean whole) {
        /** The octets at its position, null if the frame is missing. */
        byte[] found(Cursor in) {
            int place = in.place(frame);
            if (place < 0) {
                return null;
            }
            byte[] octets = in.frame(place);
            return whole ? octets : Bytes.atMost(octets, offset, spellings.get(0).length);
        }

        boolean isSpelled(byte[] found, boolean folded) {
            return found != null
                    && spellings.stream().anyMatch(one -> Bytes.equal(found, 0, found.length, one, folded));
        }
    }

    private static final int ROWS = 64;

    private final Selector[] selectors;
    private final Row[] rows = new Row[ROWS];

    TagSelection(List<Selector> selectors, Message... messages) {
        this.selectors = selectors.toArray(new Selector[0]);
        // Of messages with the same tag, the first is found first.
        for (int number = messages.length - 1; number >= 0; number--) {
            for (Tag tag : messages[number].tags()) {
                int hash = 0;
                for (int selector = 0; selector < this.selectors.length; selector++) {
                    byte[] piece = tag.piece(selector);
                    hash = hash(hash, piece, 0, piece.length, false);
                }
                int row = hash & ROWS - 1;
                rows[row] = new Row(tag, messages[number], rows[row]);
            }
        }
    }

    private static int hash(int before, byte[] octets, int from, int size, boolean folded) {
        int hash = before;
        for (int at = from; at < from + size; at++) {
            hash = 31 * hash + (folded ? Bytes.lower(octets[at]) : octets[at]);
        }
        return hash;
    }

    @Override
    Message find(Protocol protocol, Cursor in, String sender) {
        int hash = 0;
        for (Selector selector : selectors) {
            int frame = in.place(selector.frame());
            if (frame < 0) {
                throw unknown(protocol, in);
            }
            hash = hash(hash, in.array(frame), in.begin(frame), selector.size(in, frame), folded);
        }
        for (Row row = rows[hash & ROWS - 1]; row != null; row = row.next) {
            if (matches(row.tag, in)) {
                return row.message;
            }
        }
        throw unknown(protocol, in);
    }

    private boolean matches(Tag tag, Cursor in) {
        for (int number = 0; number < selectors.length; number++) {
            int frame = in.place(selectors[number].frame());
            int begin = in.begin(frame);
            int end = begin + selectors[number].size(in, frame);
            if (!Bytes.equal(in.array(frame), begin, end, tag.piece(number), folded)) {
                return false;
            }
        }
        return true;
    }

    /** Reports an unknown tag, or known tags that do not belong together. */
    private Refusal unknown(Protocol protocol, Cursor in) {
        List<List<Covered>> tags = new ArrayList<>();
        for (Message message : protocol.messages()) {
            tags.add(covered(message));
        }
        int constants = tags.stream().mapToInt(List::size).min().orElse(0);
        List<String> others = new ArrayList<>();
        for (int number = 0; number < constants; number++) {
            Covered tag = tags.get(0).get(number);
            byte[] found = tag.found(in);
            int place = number;
            if (tags.stream().noneMatch(own -> own.get(place).isSpelled(found, folded))) {
                // The last tag is the message number; those before it identify the protocol.
                return noSuchTag(protocol, in, tags, number, number == constants - 1);
            }
            others.add(tag.field.name() + " " + Words.show(found));
        }
        Covered last = tags.get(0).get(constants - 1);
        String expected = "one that goes with " + String.join(" and ", others.subList(0, constants - 1));
        return refuse(
                protocol, last.field, in.place(last.frame), last.offset, "tag", expected, Words.show(last.found(in)));
    }

    private static Refusal noSuchTag(
            Protocol protocol, Cursor in, List<List<Covered>> tags, int number, boolean own) {
        Covered tag = tags.get(0).get(number);
        byte[] found = tag.found(in);
        if (found == null) {
            String expected = "a frame with " + tag.field.name();
            return refuse(protocol, tag.field, -1, -1, "frames", expected, Words.frames(in.count));
        }
        List<byte[]> options = new ArrayList<>();
        for (List<Covered> message : tags) {
            for (byte[] spelling : message.get(number).spellings) {
                if (options.stream().noneMatch(option -> Arrays.equals(option, spelling))) {
                    options.add(spelling);
                }
            }
        }
        boolean cut = own && !tag.whole && found.length < options.get(0).length;
        return refuse(
                protocol, tag.field, in.place(tag.frame), tag.offset,
                cut ? "length" : own ? "tag" : "constant", Words.oneOf(options), Words.show(found));
    }

    /** The constants of a message that the selectors cover. */
    private List<Covered> covered(Message message) {
        List<Covered> tags = new ArrayList<>();
        for (Selector selector : selectors) {
            Part[] parts = message.parts();
            Part part = parts[selector.frame() < 0 ? selector.frame() + parts.length : selector.frame()];
            int offset = 0;
            for (Operation operation : part instanceof Frame ? part.body.operations() : new Operation[0]) {
                Covered tag = covered(operation, selector, offset);
                if (tag == null || !selector.covers(offset)) {
                    break;
                }
                tags.add(tag);
                offset += tag.spellings.get(0).length;
            }
        }
        return tags;
    }

    private static Covered covered(Operation operation, Selector selector, int offset) {
        if (operation instanceof Expect constant) {
            List<byte[]> spellings = List.of(constant.wanted());
            return new Covered(constant.field, selector.frame(), offset, spellings, selector.isWhole());
        }
        if (operation instanceof Word word) {
            return new Covered(word.field, selector.frame(), offset, word.options(), selector.isWhole());
        }
        return null;
    }
}
