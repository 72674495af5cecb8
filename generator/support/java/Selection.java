package specwire.generated.java;

/** How a protocol tells its messages apart. */
abstract class Selection {
    /** Whether octets are compared with letters in lower case. */
    boolean folded;

    final void fold() {
        folded = true;
    }

    /** The message that frames claim to be; throws {@link Refusal} if there is none. */
    abstract Message find(Protocol protocol, Cursor in, String sender);

    /** A fault before the message is identified; {@code field} is null, and numbers are -1, if there is none. */
    static Refusal refuse(
            Protocol protocol, Field field, int frame, int offset, String kind, String expected, String found) {
        return Refusal.of(
                null, protocol.name(), field == null ? null : field.name(), frame < 0 ? null : Integer.valueOf(frame),
                offset < 0 ? null : Long.valueOf(offset), kind, expected, found,
                field == null ? protocol.edition() : protocol.edition() + " " + field.rule());
    }
}
