// Written by specwire from generator/support/java/Flags.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** The octet that says which parts are present: its position and its allowed bits. */
final class Flags {
    /** Bits that belong together, and their allowed values in ascending order. */
    private record Bits(int mask, int[] values) {
        boolean allow(int flags) {
            for (int value : values) {
                if ((flags & mask) == value) {
                    return true;
                }
            }
            return false;
        }
    }

    private final Field field;
    private final int index;
    private final boolean last;
    private final int offset;
    private final List<Bits> allowed = new ArrayList<>();
    private int known;
    /** For each octet value, whether all bits that belong together are allowed. */
    private final boolean[] good = new boolean[256];

    private Flags(Field field, int index, int offset, Part[] parts) {
        this.field = field;
        this.index = index;
        this.offset = offset;
        last = index == parts.length - 1;
        Map<Integer, TreeSet<Integer>> values = new LinkedHashMap<>();
        for (Part part : parts) {
            Presence presence = part.presence();
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
            allowed.add(new Bits(mask, options.stream().mapToInt(Integer::intValue).toArray()));
        });
        for (int octet = 0; octet < good.length; octet++) {
            int flags = octet;
            good[octet] = allowed.stream().allMatch(bits -> bits.allow(flags));
        }
    }

    /** The flags among the fields of these parts, null if there are none. */
    static Flags of(Part[] parts) {
        for (int index = 0; index < parts.length; index++) {
            int offset = 0;
            for (Field field : parts[index].fields()) {
                if (field.isFlags()) {
                    return new Flags(field, index, offset, parts);
                }
                offset += Math.max(field.type().fixedSize(), 0);
            }
        }
        return null;
    }

    /** Returns the checked octet and moves the place to the first frame. */
    int read(Place place) {
        // Flags at the end of a message are counted from its end: they determine how many frames precede.
        place.index = last ? place.frames.length - 1 : index;
        place.enter(field, field.name());
        if (place.index >= place.frames.length) {
            throw place.refuse("frames", "a frame with " + field.name(), Words.frames(place.frames.length), -1);
        }
        place.open();
        place.at = offset;
        int flags = (int) place.unsigned(1);
        if (!good[flags]) {
            Bits wrong = allowed.stream().filter(bits -> !bits.allow(flags)).findFirst().orElseThrow();
            throw refuse(place, flags & wrong.mask, expected(wrong.values));
        }
        int absent = flags & place.protocol.announcing() & ~known;
        if (absent != 0) {
            throw refuse(place, absent, "0x00: the message has no such part");
        }
        place.index = 0;
        return flags;
    }

    private Refusal refuse(Place place, int found, String expected) {
        return place.refuse("range", expected, String.format("0x%02x", found), offset);
    }

    private static String expected(int[] values) {
        List<String> words = new ArrayList<>();
        for (int value : values) {
            words.add(String.format("0x%02x", value));
        }
        return Words.either(words);
    }
}
