package specwire.generated.java;

/**
 * Condition for a part: always, if {@code flags & mask == value}, or if there are enough frames.
 *
 * @param kind how presence is determined
 * @param mask bits of the flags octet that announce the part, 0 for none
 * @param value value of these bits if the part is present
 */
public record Presence(Kind kind, int mask, int value) {
    /** How the presence of a part is determined. */
    public enum Kind { ALWAYS, ANNOUNCED, COUNTED }

    /** The part is in every message. */
    public static final Presence ALWAYS = new Presence(Kind.ALWAYS, 0, 0);

    /** The part is in every message, and flags must announce it. */
    public static Presence always(int mask, int value) {
        return new Presence(Kind.ALWAYS, mask, value);
    }

    /** The part is present if flags announce it. */
    public static Presence announced(int mask, int value) {
        return new Presence(Kind.ANNOUNCED, mask, value);
    }

    /** The part is present if the message has enough frames. */
    public static Presence counted() {
        return new Presence(Kind.COUNTED, 0, 0);
    }
}
