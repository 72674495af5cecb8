package specwire.generated.java;

/** How a Spark row stores a value. */
public enum Store {
    BOOLEAN(1), BYTE(1), SHORT(2), INT(4), LONG(8), FLOAT(4), DOUBLE(8),
    /** An unsigned integer of up to 64 bits, as a decimal of 20 digits. */
    DECIMAL(8),
    /** Position and size of a value elsewhere: texts, octets, structs and lists. */
    POINTER(8);

    /** Octets of an item of a list. */
    final int width;

    Store(int width) {
        this.width = width;
    }

    boolean isPointer() {
        return this == DECIMAL || this == POINTER;
    }
}
