// Written by specwire from generator/support/java/Entries.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** A count, then that many values of one type; without a count, they extend to the end of the run. */
abstract class Entries extends Type {
    private final int countOctets;
    private final int minimum;

    Entries(int countOctets, int minimum) {
        this.countOctets = countOctets;
        this.minimum = minimum;
    }

    /** Enters an entry by number; the field is {@code field}, the path of the list {@code path}. */
    abstract void enter(Place place, Field field, String path, int number);

    /** Returns to the list. */
    abstract void leave(Place place, Field field, String path);

    abstract Object entry(Place place);

    abstract DataType entryType();

    @Override
    final DataType dataType() {
        return DataTypes.createArrayType(entryType());
    }

    /** Called once the count is known. */
    void begin(Place place) {}

    @Override
    final Object read(Place place) {
        Field field = place.field;
        String path = place.path;
        int start = place.at;
        int count = countOctets == 0 ? -1 : count(place, start);
        begin(place);
        List<Object> values = new ArrayList<>();
        while (count < 0 ? place.at < place.end : values.size() < count) {
            if (place.told) {
                enter(place, field, path, values.size());
            }
            values.add(entry(place));
        }
        leave(place, field, path);
        check(place, values.size(), start);
        return new GenericArrayData(values.toArray());
    }

    /** Reads the number of entries of at least one octet each. */
    private int count(Place place, int start) {
        long count = place.unsigned(countOctets);
        int left = place.left();
        if (Long.compareUnsigned(count, left) > 0) {
            String most = "at most " + left + " entries in " + Words.octets(left);
            throw place.refuse("count", most, Long.toUnsignedString(count), start);
        }
        check(place, (int) count, start);
        return (int) count;
    }

    private void check(Place place, int number, int start) {
        if (number < minimum) {
            throw place.refuse("count", "at least " + minimum, Integer.toString(number), start);
        }
    }
}
