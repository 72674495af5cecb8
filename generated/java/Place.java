// Written by specwire from generator/support/java/Place.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

/**
 * Where a decoder is: the frame, the octet, the run, the field and its path, for the error that may come.
 *
 * <p>A message is read twice where it has a fault: paths of entries are made the second time only.
 */
final class Place {
    final Protocol protocol;
    final Message message;
    final Object[] frames;
    final boolean told;
    /** The number of the frame. */
    int index;
    /** The octets of the frame. */
    byte[] frame;
    /** The octet at which the next value begins. */
    int at;
    /** The octet at which the innermost run ends. */
    int end;
    /** The octet at which the content of a value with a length begins, once {@link Span#open} has found it. */
    int begin;
    Field field;
    /** The field as errors name it: {@code headers[1]}. */
    String path = "";
    /** The rule of the entry, where it is another than the field's. */
    String rule;
    /** In a text that holds a name and a value: the octet between the two; -1 elsewhere. */
    int divided = -1;

    Place(Protocol protocol, Message message, Object[] frames, boolean told) {
        this.protocol = protocol;
        this.message = message;
        this.frames = frames;
        this.told = told;
    }

    /** Goes on to another field, or to none. */
    void enter(Field next, String named) {
        field = next;
        path = named;
        rule = null;
        divided = -1;
    }

    /** Goes on to the start of the frame. */
    void open() {
        frame = (byte[]) frames[index];
        at = 0;
        end = frame.length;
    }

    int left() {
        return end - at;
    }

    /** Refuses a run that ends before so many octets more. */
    void need(int octets) {
        if (octets > end - at) {
            throw refuse("length", Words.octets(octets), Integer.toString(end - at), at);
        }
    }

    /** Moves past an unsigned integer of so many octets, 1 to 8, and returns it. */
    long unsigned(int octets) {
        need(octets);
        long value = 0;
        for (int last = at + octets; at < last; at++) {
            value = value << 8 | frame[at] & 0xff;
        }
        return value;
    }

    /** Whether the run goes on with these octets. */
    boolean begins(byte[] octets) {
        return octets.length <= end - at && Bytes.standAt(frame, at, octets);
    }

    /** Refuses more octets behind the last value of a frame. */
    void endFrame() {
        if (at < end) {
            throw refuse("trailing", "the end of the frame", Words.numberOf(end - at, "more octet"), at);
        }
    }

    String ruleName() {
        return rule != null ? rule : field != null ? field.rule() : message.name();
    }

    /** The fault at octet {@code offset} of the frame, -1 where no octet is meant. */
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
