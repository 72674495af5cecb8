// Written by specwire from generator/support/java/Stack.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.catalyst.util.GenericArrayData;

/** Frames up to an empty one, the top of the stack first. */
public final class Stack extends Part {
    private final Field field;
    private final boolean words;

    public Stack(Presence presence, Field field) {
        super(presence);
        this.field = field;
        words = field.type() instanceof Text text && text.isTerminated();
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
        return "an empty frame that ends ";
    }

    @Override
    void read(Place place, Object[] values, int column) {
        int first = place.index;
        int last = delimiter(place);
        Object[] found = new Object[last - first];
        for (int number = 0; number < found.length; number++) {
            found[number] = element(place, field, number);
            if (words && place.frame.length == 1 && place.frame[0] == 0) {
                // Without NUL, the frame would be the empty one that ends the stack.
                throw place.refuse("length", "text before the NUL", "none", 0);
            }
            place.index++;
        }
        values[column] = new GenericArrayData(found);
        place.index++;
    }

    private static int delimiter(Place place) {
        for (int number = place.index; number < place.frames.length; number++) {
            if (((byte[]) place.frames[number]).length == 0) {
                return number;
            }
        }
        place.index = place.frames.length;
        String expected = "an empty frame that ends " + place.path;
        throw place.refuse("frames", expected, Words.frames(place.frames.length), -1);
    }
}
