package specwire.generated.java;

import java.util.HexFormat;

/** Octets as layouts write them. */
final class Hex {
    private Hex() {}

    static byte[] octets(String hex) {
        return HexFormat.of().parseHex(hex);
    }
}
