// Written by specwire from generator/support/java/Part.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

/** A part of a message: a frame, a stack of frames up to an empty one, or all frames that are left. */
public abstract class Part {
    private final Presence presence;

    Part(Presence presence) {
        this.presence = presence;
    }

    final Presence presence() {
        return presence;
    }

    /** The fields of the part. */
    abstract Field[] fields();

    /** How many columns the part fills. */
    abstract int columns();

    /** Names the part for errors. */
    abstract void enter(Place place);

    /** Reads the part, whose first frame is there, into {@code values}, from {@code column} on. */
    abstract void read(Place place, Object[] values, int column);

    /** What a message lacks that ends before the part. */
    abstract String missing();

    /** Reads the frame of that number in a part of several as a value. */
    static Object element(Place place, Field field, int number) {
        place.enter(field, place.told ? field.name() + "[" + number + "]" : field.name());
        place.open();
        return field.type().readWhole(place);
    }
}
