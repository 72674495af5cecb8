// Written by specwire from generator/support/java/ListOf.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.types.DataType;

/** A list of values of one type. */
public final class ListOf extends Entries {
    private final Type element;

    public ListOf(int countOctets, Type element) {
        this(countOctets, element, 0);
    }

    public ListOf(int countOctets, Type element, int minimum) {
        super(countOctets, minimum);
        this.element = element;
    }

    @Override
    void enter(Place place, Field field, String path, int number) {
        place.enter(field, path + "[" + number + "]");
    }

    @Override
    void leave(Place place, Field field, String path) {
        place.enter(field, path);
    }

    @Override
    DataType entryType() {
        return element.dataType();
    }

    @Override
    Object entry(Place place) {
        return element.read(place);
    }
}
