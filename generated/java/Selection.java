// Written by specwire from generator/support/java/Selection.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

/** How a protocol tells its messages apart. */
abstract class Selection {
    /** The message that frames claim to be; throws {@link Refusal} if there is none. */
    abstract Message find(Protocol protocol, Object[] frames, String sender);

    /** A fault before the message is identified. */
    static Refusal refuse(
            Protocol protocol, String field, int frame, int offset, String kind, String expected, String found,
            String rule) {
        return Refusal.of(
                null, protocol.name(), field, frame < 0 ? null : Integer.valueOf(frame),
                offset < 0 ? null : Long.valueOf(offset), kind, expected, found,
                rule == null ? protocol.edition() : protocol.edition() + " " + rule);
    }
}
