// Written by specwire from generator/support/java/Pairs.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.unsafe.types.UTF8String;

/** A dictionary: names and values in wire order, repeated names included. */
public final class Pairs extends Entries {
    /** Where a text with name and value is split: at its first or last {@code =}. */
    public enum Split { FIRST, LAST }

    private final Text name;
    private final Type value;
    private final Split split;
    private final String rule;

    /** Names and values one after the other; {@code rule} is the grammar's for an entry, null where it has no name. */
    public Pairs(int countOctets, Text name, Type value, String rule, int minimum) {
        super(countOctets, minimum);
        this.name = name;
        this.value = value;
        this.rule = rule;
        split = null;
    }

    /** Texts with a name and a value each. */
    public Pairs(int countOctets, Text both, Split split, String rule, int minimum) {
        super(countOctets, minimum);
        name = both;
        value = null;
        this.rule = rule;
        this.split = split;
    }

    @Override
    void begin(Place place) {
        place.rule = rule;
    }

    @Override
    void enter(Place place, Field field, String path, int number) {
        place.path = path + "[" + number + "]";
    }

    @Override
    void leave(Place place, Field field, String path) {
        place.path = path;
    }

    @Override
    Object entry(Place place) {
        if (value == null) {
            return divided(place);
        }
        if (!place.told) {
            return pair(name.read(place), value.read(place));
        }
        String entry = place.path;
        place.path = entry + ".name";
        Object first = name.read(place);
        place.path = entry + ".value";
        return pair(first, value.read(place));
    }

    /** Reads name and value from one text; a fault is assigned to its side of the {@code =}. */
    private Object divided(Place place) {
        name.span().open(place);
        byte[] frame = place.frame;
        int begin = place.begin;
        int equals = equalsSign(frame, begin, place.at);
        place.divided = equals;
        int stop = name.contentEnd(place, begin, place.at);
        if (equals < 0) {
            throw place.refuse("text", "name=value", Words.show(frame, begin, place.at), begin);
        }
        place.divided = -1;
        return pair(
                UTF8String.fromBytes(frame, begin, equals - begin),
                UTF8String.fromBytes(frame, equals + 1, stop - equals - 1));
    }

    private static Object pair(Object name, Object value) {
        return new GenericInternalRow(new Object[] {name, value});
    }

    @Override
    DataType entryType() {
        DataType second = value == null ? DataTypes.StringType : value.dataType();
        return DataTypes.createStructType(new StructField[] {
            Columns.column("name", DataTypes.StringType), Columns.column("value", second),
        });
    }

    private int equalsSign(byte[] frame, int begin, int end) {
        int step = split == Split.FIRST ? 1 : -1;
        for (int at = step > 0 ? begin : end - 1; at >= begin && at < end; at += step) {
            if (frame[at] == '=') {
                return at;
            }
        }
        return -1;
    }
}
