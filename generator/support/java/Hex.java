package specwire.generated.java;

import java.util.HexFormat;

/** Octets in the hexadecimal notation of layouts. */
final class Hex {
    private Hex() {}

    static byte[] octets(String hex) {
        return HexFormat.of().parseHex(hex);
    }
}
