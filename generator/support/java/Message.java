package specwire.generated.java;

import java.util.List;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** One message: its parts, and the data that identify it. */
public final class Message {
    private final String name;
    private final String className;
    /** The class name for Spark rows. */
    private final UTF8String classNameUtf8;
    private final String type;
    private final int columns;
    private final int registers;
    private final List<Tag> tags;
    private final List<String> patterns;
    private final Flags flags;
    private final Part[] parts;
    /** For each part, the minimum number of frames of the parts after it. */
    private final int[] after;
    private final int room;
    /** Index among the protocol's messages. */
    private int number;

    /**
     * A message of the grammar.
     *
     * @param type the columns, as SQL defines them
     * @param columns the number of values; 0 for a message whose only column says that it is present
     * @param registers the number of hidden numbers
     * @param tags what the protocol's selectors find in it, for each spelling
     * @param patterns how its first frame begins, where that tells messages apart: hexadecimal, {@code ?} for any half octet
     * @param flags the octet that announces parts, null if there is none
     */
    public Message(
            String name, String className, String type, int columns, int registers, List<Tag> tags,
            List<String> patterns, Flags flags, Part... parts) {
        this.name = name;
        this.className = className;
        classNameUtf8 = UTF8String.fromString(className);
        this.type = type;
        this.columns = columns;
        this.registers = registers;
        this.tags = tags;
        this.patterns = patterns;
        this.flags = flags;
        this.parts = parts;
        after = new int[parts.length];
        int required = 0;
        int rooms = 0;
        for (int part = parts.length - 1; part >= 0; part--) {
            after[part] = required;
            required += parts[part].isRequired() ? 1 : 0;
            rooms += parts[part].room();
        }
        room = rooms;
        if (flags != null) {
            flags.allow(parts);
        }
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

    StructType type() {
        return StructType.fromDDL(type);
    }

    int columns() {
        return Math.max(columns, 1);
    }

    int number() {
        return number;
    }

    /** Sets the index among the protocol's messages. */
    void setNumber(int index) {
        number = index;
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

    /** Reads the message into the row; throws {@link Refusal}. With {@code names}, the fault names its field. */
    void read(Cursor in, Protocol protocol, boolean names) {
        in.begin(protocol, this, registers, names);
        in.row.begin(columns(), room + in.total());
        int bits = flags == null ? -1 : flags.read(in, protocol.announcing());
        for (int part = 0; part < parts.length; part++) {
            if (parts[part].isPresent(in, bits, after[part])) {
                admit(in, part, protocol.hasHeaderLast());
                parts[part].read(in);
            } else {
                parts[part].absent(in.row);
            }
        }
        if (in.index < in.count) {
            throw surplus(in, in.index);
        }
        if (columns == 0) {
            in.row.number(0, Store.BOOLEAN, 1);
        }
    }

    /** Refuses a part whose first frame is missing, or that must be last and is not. */
    private void admit(Cursor in, int part, boolean headerLast) {
        if (in.names) {
            in.enter(parts[part].field);
        }
        boolean last = part == parts.length - 1;
        if (parts[part] instanceof Frames frames && !frames.isDelimited()) {
            return;
        }
        // A header that is counted from the end stays the same part, however many frames there are.
        if (headerLast && last && in.index < in.count - 1) {
            throw surplus(in, in.index + 1);
        }
        if (in.index >= in.count - (headerLast && !last ? 1 : 0)) {
            throw in.refuse("frames", parts[part].missing() + in.path, Words.frames(in.count), -1);
        }
    }

    private static Refusal surplus(Cursor in, int wanted) {
        in.leave();
        return in.refuse("frames", Words.frames(wanted), Integer.toString(in.count), -1);
    }
}
