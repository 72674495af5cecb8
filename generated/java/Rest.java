// Written by specwire from generator/support/java/Rest.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.catalyst.util.GenericArrayData;

/** All remaining frames, none or more. */
public final class Rest extends Part {
    private final Field field;

    public Rest(Field field) {
        super(Presence.ALWAYS);
        this.field = field;
    }

    @Override
    Field[] fields() {
        return new Field[] {field};
    }

    @Override
    int columns() {
        return 1;
    }

    @Override
    void enter(Place place) {
        place.enter(field, field.name());
    }

    @Override
    String missing() {
        throw new IllegalStateException("nothing is missing where no frame is left");
    }

    @Override
    void read(Place place, Object[] values, int column) {
        Object[] found = new Object[place.frames.length - place.index];
        for (int number = 0; number < found.length; number++) {
            found[number] = element(place, field, number);
            place.index++;
        }
        values[column] = new GenericArrayData(found);
    }
}
