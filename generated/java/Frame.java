// Written by specwire from generator/support/java/Frame.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

/** One ZeroMQ frame, and the fields in it. */
public final class Frame extends Part {
    private final String name;
    private final Fields fields;
    private final boolean whole;

    /** A frame; if it has only one field, both have the same name. */
    public Frame(String name, Presence presence, Field... fields) {
        super(presence);
        this.fields = new Fields(fields);
        this.name = fields.length > 1 ? name : fields[0].name();
        whole = fields.length == 1 && (fields[0].type() instanceof Constant || fields[0].type() instanceof Keyword);
    }

    @Override
    Field[] fields() {
        return fields.all();
    }

    @Override
    int columns() {
        return fields.columns();
    }

    @Override
    void enter(Place place) {
        place.enter(fields.isSingle() ? fields.first() : null, name);
    }

    @Override
    String missing() {
        return "a frame with ";
    }

    @Override
    void read(Place place, Object[] values, int column) {
        place.enter(fields.first(), fields.first().name());
        place.open();
        if (whole) {
            Object word = fields.first().type().readWhole(place);
            if (fields.columns() > 0) {
                values[column] = word;
            }
        } else {
            fields.readFrame(place, values, column);
            place.enter(null, "");
            place.endFrame();
        }
        place.index++;
    }
}
