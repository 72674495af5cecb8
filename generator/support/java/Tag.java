package specwire.generated.java;

import java.util.List;
import java.util.stream.Stream;

/** What a protocol's selectors find in a message: a piece for each. */
public final class Tag {
    private final List<byte[]> pieces;

    /** The pieces in hexadecimal. */
    public Tag(String... pieces) {
        this.pieces = Stream.of(pieces).map(Hex::octets).toList();
    }

    /** Whether each selector finds its piece in these frames. */
    boolean stands(Selector[] selectors, Object[] frames) {
        for (int number = 0; number < selectors.length; number++) {
            if (!selectors[number].finds(frames, pieces.get(number))) {
                return false;
            }
        }
        return true;
    }
}
