// Written by specwire from generator/support/java/TagSelection.java. Do not edit; change that file and run `make generate`.
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
    /** A constant that a selector covers, and its position. */
    private record Covered(Field field, int frame, int offset, List<byte[]> spellings, boolean whole) {
        /** The octets at its position, null if the frame is missing. */
        byte[] found(Object[] frames) {
            int place = Selector.place(frame, frames.length);
            if (place < 0) {
                return null;
            }
            byte[] octets = (byte[]) frames[place];
            return whole ? octets : Bytes.atMost(octets, offset, spellings.get(0).length);
        }

        boolean isSpelled(byte[] found) {
            return found != null && spellings.stream().anyMatch(spelling -> Arrays.equals(spelling, found));
        }
    }

    private final Selector[] selectors;

    TagSelection(Selector... selectors) {
        this.selectors = selectors;
    }

    @Override
    Message find(Protocol protocol, Object[] frames, String sender) {
        for (Message message : protocol.messages()) {
            for (Tag tag : message.tags()) {
                if (tag.matches(selectors, frames)) {
                    return message;
                }
            }
        }
        throw unknown(protocol, frames);
    }

    /** Reports an unknown tag, or known tags that do not belong together. */
    private Refusal unknown(Protocol protocol, Object[] frames) {
        List<List<Covered>> tags = new ArrayList<>();
        for (Message message : protocol.messages()) {
            tags.add(covered(message));
        }
        int rows = tags.stream().mapToInt(List::size).min().orElse(0);
        List<String> others = new ArrayList<>();
        for (int row = 0; row < rows; row++) {
            Covered tag = tags.get(0).get(row);
            byte[] found = tag.found(frames);
            int number = row;
            if (tags.stream().noneMatch(own -> own.get(number).isSpelled(found))) {
                // The last tag is the message number; those before it identify the protocol.
                return noSuchTag(protocol, frames, tags, row, row == rows - 1);
            }
            others.add(tag.field.name() + " " + Words.show(found));
        }
        Covered last = tags.get(0).get(rows - 1);
        String expected = "one that goes with " + String.join(" and ", others.subList(0, rows - 1));
        return refuse(
                protocol, last.field.name(), Selector.place(last.frame, frames.length), last.offset, "tag", expected,
                Words.show(last.found(frames)), last.field.rule());
    }

    private static Refusal noSuchTag(
            Protocol protocol, Object[] frames, List<List<Covered>> tags, int row, boolean own) {
        Covered tag = tags.get(0).get(row);
        String name = tag.field.name();
        byte[] found = tag.found(frames);
        if (found == null) {
            String lacking = Words.frames(frames.length);
            return refuse(protocol, name, -1, -1, "frames", "a frame with " + name, lacking, tag.field.rule());
        }
        List<byte[]> options = new ArrayList<>();
        for (List<Covered> message : tags) {
            for (byte[] spelling : message.get(row).spellings) {
                if (options.stream().noneMatch(option -> Arrays.equals(option, spelling))) {
                    options.add(spelling);
                }
            }
        }
        boolean cut = own && !tag.whole && found.length < options.get(0).length;
        return refuse(
                protocol, name, Selector.place(tag.frame, frames.length), tag.offset,
                cut ? "length" : own ? "tag" : "constant", Words.oneOf(options), Words.show(found), tag.field.rule());
    }

    /** The constants of a message that the selectors cover. */
    private List<Covered> covered(Message message) {
        List<Covered> tags = new ArrayList<>();
        for (Selector selector : selectors) {
            Part part = message.parts()[Selector.place(selector.frame(), message.parts().length)];
            int offset = 0;
            for (Field field : part instanceof Frame ? part.fields() : new Field[0]) {
                List<byte[]> options = spellings(field.type());
                if (options.isEmpty() || !selector.covers(offset)) {
                    break;
                }
                tags.add(new Covered(field, selector.frame(), offset, options, selector.isWhole()));
                offset += options.get(0).length;
            }
        }
        return tags;
    }

    private static List<byte[]> spellings(Type type) {
        if (type instanceof Constant constant) {
            return List.of(constant.octets());
        }
        return type instanceof Keyword keyword ? keyword.options() : List.of();
    }
}
