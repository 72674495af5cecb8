package specwire.generated.java;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** The octet that says which parts are present: its position, and its allowed bits. */
public final class Flags {
    /** Bits that belong together, and their allowed values in ascending order. */
    private record Bits(int mask, TreeSet<Integer> values) {
        boolean allow(int flags) {
            return values.contains(flags & mask);
        }
    }

    private final Field field;
    private final int part;
    private final int offset;
    private final int register;
    private Part[] parts;
    private final List<Bits> allowed = new ArrayList<>();
    private int known;
    /** For each octet value, whether all bits that belong together are allowed. */
    private final boolean[] good = new boolean[256];
    private boolean last;

    /** The octet at an offset of a part, which is one frame. */
    public Flags(Field field, int part, int offset) {
        this(field, part, offset, Operation.NONE);
    }

    /** The number of a part that a register keeps; its offset varies. */
    public static Flags kept(Field field, int part, int register) {
        return new Flags(field, part, -1, register);
    }

    private Flags(Field field, int part, int offset, int register) {
        this.field = field;
        this.part = part;
        this.offset = offset;
        this.register = register;
    }

    /** Finds out what the parts allow. */
    void allow(Part... all) {
        parts = all;
        // Flags at the end of a message are counted from its end: they determine how many frames precede.
        last = part == parts.length - 1;
        Map<Integer, TreeSet<Integer>> values = new LinkedHashMap<>();
        for (Part one : parts) {
            Presence presence = one.presence;
            if (presence.mask() != 0) {
                TreeSet<Integer> options = values.computeIfAbsent(presence.mask(), mask -> new TreeSet<>());
                options.add(presence.value());
                if (presence.kind() == Presence.Kind.ANNOUNCED) {
                    options.add(0);
                }
            }
        }
        values.forEach((mask, options) -> {
            known |= mask;
            allowed.add(new Bits(mask, options));
        });
        for (int octet = 0; octet < good.length; octet++) {
            int flags = octet;
            good[octet] = allowed.stream().allMatch(bits -> bits.allow(flags));
        }
    }

    /** Returns the checked octet, and moves the cursor to the first frame; {@code announcing} bits announce parts. */
    int read(Cursor in, int announcing) {
        in.index = last ? in.count - 1 : frame(in);
        enter(in);
        if (in.index >= in.count) {
            throw in.refuse("frames", "a frame with " + field.name(), Words.frames(in.count), -1);
        }
        in.open();
        int start = offset < 0 ? search(in) : in.at + offset;
        in.at = start;
        int flags = (int) in.unsigned(1);
        if (!good[flags]) {
            Bits wrong = allowed.stream().filter(bits -> !bits.allow(flags)).findFirst().orElseThrow();
            List<String> values =
                    wrong.values.stream().map(Flags::hex).collect(Collectors.toList());
            throw in.refuse("range", Words.either(values), hex(flags & wrong.mask), start);
        }
        int absent = flags & announcing & ~known;
        if (absent != 0) {
            throw in.refuse("range", "0x00: the message has no such part", hex(absent), start);
        }
        in.index = 0;
        return flags;
    }

    private void enter(Cursor in) {
        if (in.names) {
            in.enter(field);
        }
    }

    /** The index of the frame: after the parts before it, all of which are present. */
    private int frame(Cursor in) {
        in.index = 0;
        for (int before = 0; before < part; before++) {
            if (parts[before] instanceof Frames frames) {
                if (in.names) {
                    in.enter(frames.field);
                }
                in.index = frames.delimiter(in);
            }
            in.index++;
        }
        return in.index;
    }

    /** The position of the octet, after what is read before it. */
    private int search(Cursor in) {
        long mark = in.row.mark();
        for (Operation operation : parts[part].body.operations()) {
            operation.read(in);
            if (operation instanceof Number number && number.register() == register) {
                break;
            }
        }
        in.row.reset(mark);
        enter(in);
        return in.position(register);
    }

    private static String hex(int octet) {
        return String.format("0x%02x", octet);
    }
}
