package specwire.generated.java;

import java.util.zip.Adler32;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;

/** A checksum of octets; the names are those of {@code specwire.generated.checksums}. */
public enum Checksum {
    ADLER32 {
        @Override
        long of(byte[] octets) {
            return result(new Adler32(), octets);
        }
    },
    CRC16_CCITT {
        @Override
        long of(byte[] octets) {
            return crc16(octets, 0xffff);
        }
    },
    CRC16_MODBUS {
        @Override
        long of(byte[] octets) {
            int value = 0xffff;
            for (byte octet : octets) {
                value ^= octet & 0xff;
                for (int bit = 0; bit < Byte.SIZE; bit++) {
                    value = value >> 1 ^ (value & 1) * 0xa001;
                }
            }
            return value;
        }
    },
    CRC16_XMODEM {
        @Override
        long of(byte[] octets) {
            return crc16(octets, 0);
        }
    },
    CRC32 {
        @Override
        long of(byte[] octets) {
            return result(new CRC32(), octets);
        }
    },
    CRC32C {
        @Override
        long of(byte[] octets) {
            return result(new CRC32C(), octets);
        }
    },
    INTERNET {
        @Override
        long of(byte[] octets) {
            long sum = 0;
            for (int at = 0; at < octets.length; at++) {
                sum += (octets[at] & 0xffL) << (at % 2 == 0 ? Byte.SIZE : 0);
            }
            while (sum >> Short.SIZE != 0) {
                sum = (sum & 0xffff) + (sum >> Short.SIZE);
            }
            return ~sum & 0xffff;
        }
    },
    SUM8 {
        @Override
        long of(byte[] octets) {
            int sum = 0;
            for (byte octet : octets) {
                sum += octet;
            }
            return sum & 0xff;
        }
    },
    XOR8 {
        @Override
        long of(byte[] octets) {
            int value = 0;
            for (byte octet : octets) {
                value ^= octet;
            }
            return value & 0xff;
        }
    };

    abstract long of(byte[] octets);

    private static long result(java.util.zip.Checksum checksum, byte[] octets) {
        checksum.update(octets);
        return checksum.getValue();
    }

    /** The cyclic redundancy check of 16 bits with the polynomial of CCITT. */
    private static long crc16(byte[] octets, int start) {
        int value = start;
        for (byte octet : octets) {
            value ^= (octet & 0xff) << Byte.SIZE;
            for (int bit = 0; bit < Byte.SIZE; bit++) {
                value = (value << 1 ^ (value >> 15) * 0x1021) & 0xffff;
            }
        }
        return value;
    }
}
