package specwire.generated.java;

/** One ZeroMQ frame. */
public final class Frame extends Part {
    /** A frame; {@code field} is its only field, or names the frame. */
    public Frame(Field field, Presence presence, Operation... body) {
        super(field, presence, body);
    }

    @Override
    String missing() {
        return "a frame with ";
    }

    @Override
    void read(Cursor in) {
        open(in);
        if (in.names) {
            in.leave();
        }
        in.endFrame();
        in.index++;
    }
}
