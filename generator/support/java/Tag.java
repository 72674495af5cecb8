package specwire.generated.java;

import java.util.stream.Stream;

/** The octets at a protocol's selectors in a message, one piece for each selector. */
public final class Tag {
    private final byte[][] pieces;

    /** The pieces in hexadecimal. */
    public Tag(String... pieces) {
        this.pieces = Stream.of(pieces).map(Bytes::parse).toArray(byte[][]::new);
    }

    byte[] piece(int selector) {
        return pieces[selector];
    }
}
