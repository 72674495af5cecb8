// Written by specwire from generator/support/java/Presence.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

/**
 * When a part is there: always, when {@code flags & mask == value}, or when there are frames enough.
 *
 * @param kind how that is told
 * @param mask the bits of the flags octet that say it, 0 for none
 * @param value what these bits are then
 */
public record Presence(Kind kind, int mask, int value) {
    /** How a part's presence is told. */
    public enum Kind { ALWAYS, ANNOUNCED, COUNTED }

    /** The part is in every message. */
    public static final Presence ALWAYS = new Presence(Kind.ALWAYS, 0, 0);

    /** The part is in every message, and flags must say so. */
    public static Presence always(int mask, int value) {
        return new Presence(Kind.ALWAYS, mask, value);
    }

    /** The part is there when flags say so. */
    public static Presence announced(int mask, int value) {
        return new Presence(Kind.ANNOUNCED, mask, value);
    }

    /** The part is there when the message has frames enough. */
    public static Presence counted() {
        return new Presence(Kind.COUNTED, 0, 0);
    }
}
