// Written by specwire from generator/support/java/Place.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

/**
 * Position of a decoder: frame, octet, run, field and path, for errors.
 *
 * <p>A message with a fault is read twice; paths of entries are built only the second time.
 */
final class Place {
    final Protocol protocol;
    final Message message;
    final Object[] frames;
    final boolean told;
    /** Index of the frame. */
    int index;
    /** The octets of the frame. */
    byte[] frame;
    /** Offset of the next value. */
    int at;
    /** Offset at which the innermost run ends. */
    int end;
    /** Offset of the content of a value with a length, set by {@link Span#open}. */
    int begin;
    Field field;
    /** Path of the field as in errors: {@code headers[1]}. */
    String path = "";
    /** Rule of the entry, if it differs from the field's rule. */
    String rule;
    /** In a text with name and value: offset of the octet between them; -1 otherwise. */
    int divided = -1;

    Place(Protocol protocol, Message message, Object[] frames, boolean told) {
        this.protocol = protocol;
        this.message = message;
        this.frames = frames;
        this.told = told;
    }

    /** Moves to another field, or to none. */
    void enter(Field next, String named) {
        field = next;
        path = named;
        rule = null;
        divided = -1;
    }

    /** Moves to the start of the frame. */
    void open() {
        frame = (byte[]) frames[index];
        at = 0;
        end = frame.length;
    }

    int left() {
        return end - at;
    }

    /** Refuses a run with too few octets left. */
    void need(int octets) {
        if (octets > end - at) {
            throw refuse("length", Words.octets(octets), Integer.toString(end - at), at);
        }
    }

    /** Reads an unsigned integer of 1 to 8 octets and advances past it. */
    long unsigned(int octets) {
        need(octets);
        long value = 0;
        for (int last = at + octets; at < last; at++) {
            value = value << 8 | frame[at] & 0xff;
        }
        return value;
    }

    /** Whether the next octets of the run are these. */
    boolean begins(byte[] octets) {
        return octets.length <= end - at && Bytes.standAt(frame, at, octets);
    }

    /** Refuses octets after the last value of a frame. */
    void endFrame() {
        if (at < end) {
            throw refuse("trailing", "the end of the frame", Words.numberOf(end - at, "more octet"), at);
        }
    }

    String ruleName() {
        return rule != null ? rule : field != null ? field.rule() : message.name();
    }

    /** The fault at offset {@code offset} of the frame; -1 if no octet is at fault. */
    Refusal refuse(String kind, String expected, String found, int offset) {
        String named = path;
        if (divided >= 0 && offset >= 0) {
            named += offset < divided ? ".name" : ".value";
        }
        Integer where = frames.length == 0 ? null : Integer.valueOf(Math.min(index, frames.length));
        return Refusal.of(
                message.name(), message.name(), named.isEmpty() ? null : named, where,
                offset < 0 ? null : Long.valueOf(offset), kind, expected, found,
                protocol.edition() + " " + ruleName());
    }
}
