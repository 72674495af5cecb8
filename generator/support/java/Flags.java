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
    private final List<Bits> allowed = new ArrayList<>();
    private int known;
    /** For each octet value, whether all bits that belong together are allowed. */
    private final boolean[] good = new boolean[256];
    private boolean last;

    /** The octet at an offset of a part, which is one frame. */
    public Flags(Field field, int part, int offset) {
        this.field = field;
        this.part = part;
        this.offset = offset;
    }

    /** Finds out what the parts allow. */
    void allow(Part... parts) {
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
        in.index = last ? in.count - 1 : part;
        if (in.names) {
            in.enter(field);
        }
        if (in.index >= in.count) {
            throw in.refuse("frames", "a frame with " + field.name(), Words.frames(in.count), -1);
        }
        in.open();
        in.at += offset;
        int start = in.at;
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

    private static String hex(int octet) {
        return String.format("0x%02x", octet);
    }
}
