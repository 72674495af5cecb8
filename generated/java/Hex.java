// Written by specwire from generator/support/java/Hex.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.HexFormat;

/** Octets in the hexadecimal notation of layouts. */
final class Hex {
    private Hex() {}

    static byte[] octets(String hex) {
        return HexFormat.of().parseHex(hex);
    }
}
