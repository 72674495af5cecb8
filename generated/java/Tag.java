// Written by specwire from generator/support/java/Tag.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.List;
import java.util.stream.Stream;

/** The octets at a protocol's selectors in a message, one piece for each selector. */
public final class Tag {
    private final List<byte[]> pieces;

    /** The pieces in hexadecimal. */
    public Tag(String... pieces) {
        this.pieces = Stream.of(pieces).map(Hex::octets).toList();
    }

    /** Whether each selector matches its piece in these frames. */
    boolean matches(Selector[] selectors, Object[] frames) {
        for (int number = 0; number < selectors.length; number++) {
            if (!selectors[number].finds(frames, pieces.get(number))) {
                return false;
            }
        }
        return true;
    }
}
