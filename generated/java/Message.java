// Written by specwire from generator/support/java/Message.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.List;
import org.apache.spark.unsafe.types.UTF8String;

/** One message: its parts, and the data that identify it. */
public final class Message {
    private final String name;
    private final String className;
    /** The class name for Spark rows. */
    private final UTF8String classNameUtf8;
    private final List<Tag> tags;
    private final List<String> patterns;
    private final Part[] parts;
    /** For each part, the minimum number of frames of the parts after it. */
    private final int[] after;
    private final Flags flags;
    private final int columns;
    /** Index among the protocol's messages. */
    private int number;

    /**
     * A message of the grammar.
     *
     * @param tags what the protocol's selectors find in it, for each spelling
     * @param patterns how its first frame begins, where that tells messages apart: hexadecimal, {@code ??} for any
     */
    public Message(String name, String className, List<Tag> tags, List<String> patterns, Part... parts) {
        this.name = name;
        this.className = className;
        classNameUtf8 = UTF8String.fromString(className);
        this.tags = tags;
        this.patterns = patterns;
        this.parts = parts;
        after = new int[parts.length];
        int total = 0;
        int filled = 0;
        for (int number = parts.length - 1; number >= 0; number--) {
            after[number] = total;
            boolean always = parts[number].presence().kind() == Presence.Kind.ALWAYS;
            total += always && !(parts[number] instanceof Rest) ? 1 : 0;
            filled += parts[number].columns();
        }
        columns = filled;
        flags = Flags.of(parts);
    }

    String name() {
        return name;
    }

    String className() {
        return className;
    }

    UTF8String classNameUtf8() {
        return classNameUtf8;
    }

    int number() {
        return number;
    }

    /** Sets the index among the protocol's messages. */
    void setNumber(int number) {
        this.number = number;
    }

    List<Tag> tags() {
        return tags;
    }

    List<String> patterns() {
        return patterns;
    }

    Part[] parts() {
        return parts;
    }

    /** Reads the message; returns its columns, or throws {@link Refusal}. */
    Object[] read(Place place) {
        int bits = flags == null ? -1 : flags.read(place);
        Object[] values = new Object[columns];
        int column = 0;
        for (int number = 0; number < parts.length; number++) {
            Part part = parts[number];
            part.enter(place);
            if (isPresent(place, number, bits)) {
                if (!(part instanceof Rest)) {
                    admit(place, number);
                }
                part.read(place, values, column);
            }
            column += part.columns();
        }
        if (place.index < place.frames.length) {
            throw surplus(place, place.index);
        }
        return columns > 0 ? values : Fields.present();
    }

    private boolean isPresent(Place place, int number, int bits) {
        Presence presence = parts[number].presence();
        return switch (presence.kind()) {
            case ALWAYS -> true;
            case ANNOUNCED -> bits >= 0 && (bits & presence.mask()) == presence.value();
            case COUNTED -> place.index < place.frames.length - after[number];
        };
    }

    /** Refuses a part whose first frame is missing, or that must be last and is not. */
    private void admit(Place place, int number) {
        // A header that is counted from the end stays the same part, however many frames there are.
        boolean header = place.protocol.hasHeaderLast();
        boolean last = number == parts.length - 1;
        int frames = place.frames.length;
        if (header && last && place.index < frames - 1) {
            throw surplus(place, place.index + 1);
        }
        if (place.index >= frames - (header && !last ? 1 : 0)) {
            String expected = parts[number].missing() + place.path;
            throw place.refuse("frames", expected, Words.frames(frames), -1);
        }
    }

    private static Refusal surplus(Place place, int wanted) {
        place.enter(null, "");
        return place.refuse("frames", Words.frames(wanted), Integer.toString(place.frames.length), -1);
    }
}
