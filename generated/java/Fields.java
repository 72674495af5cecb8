// Written by specwire from generator/support/java/Fields.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.stream.Stream;

/**
 * A run of adjacent fields, of a frame or of a record inside one.
 *
 * <p>Types do not contain themselves, so the grammar bounds the depth of the walk, not the octets.
 */
final class Fields {
    private final Field[] fields;
    private final int columns;
    /** Reader of all fields at once, null if that is impossible. */
    private final FixedFields together;

    Fields(Field... fields) {
        this.fields = fields;
        columns = (int) Stream.of(fields).filter(field -> !field.implied()).count();
        together = FixedFields.of(fields);
    }

    Field first() {
        return fields[0];
    }

    Field[] all() {
        return fields;
    }

    boolean isSingle() {
        return fields.length == 1;
    }

    /** Number of fields with a column. */
    int columns() {
        return columns;
    }

    /** Reads the fields of a frame into {@code values}, from {@code column} on. */
    void readFrame(Place place, Object[] values, int column) {
        if (together != null && together.read(place, values, column)) {
            return;
        }
        int next = column;
        for (Field field : fields) {
            place.enter(field, field.name());
            if (field.isOptional() && place.at == place.end) {
                break;
            }
            if (field.type() instanceof Size size) {
                long announced = size.readSize(place);
                if (announced != place.left()) {
                    throw differs(place, announced);
                }
            } else {
                Object value = field.type().read(place);
                if (!field.implied()) {
                    values[next++] = value;
                }
            }
        }
    }

    /** Reads the fields of a record, whose run ends where its size says; {@code rule} is the record's rule. */
    Object[] readRecord(Place place, String rule) {
        Object[] values = new Object[Math.max(columns, 1)];
        Field whole = place.field;
        String path = place.path;
        int outer = place.end;
        boolean bounded = false;
        int next = 0;
        for (Field field : fields) {
            place.enter(field, place.told ? path + "." + field.name() : path);
            if (field.isOptional() && place.at == place.end) {
                break;
            }
            if (field.type() instanceof Size size) {
                place.end = bound(place, size.readSize(place), bounded);
                bounded = true;
            } else {
                Object value = field.type().read(place);
                if (!field.implied()) {
                    values[next++] = value;
                }
            }
        }
        place.enter(whole, path);
        if (bounded && place.at < place.end) {
            place.rule = rule;
            String more = Words.numberOf(place.left(), "more octet");
            throw place.refuse("trailing", "the end of " + path, more, place.at);
        }
        place.end = outer;
        return columns > 0 ? values : present();
    }

    /** Value of a message or record without fields. */
    static Object[] present() {
        return new Object[] {Boolean.TRUE};
    }

    private static int bound(Place place, long size, boolean bounded) {
        int left = place.left();
        if (Long.compareUnsigned(size, left) > 0) {
            String most = "at most " + left + ", the number of octets left";
            throw place.refuse("length", most, Long.toUnsignedString(size), place.begin);
        }
        if (bounded && size < left) {
            throw differs(place, size);
        }
        return place.at + (int) size;
    }

    private static Refusal differs(Place place, long size) {
        String expected = place.left() + ", the number of octets behind it";
        return place.refuse("length", expected, Long.toUnsignedString(size), place.begin);
    }
}
