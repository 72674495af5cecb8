package specwire.generated.java;

import java.util.List;
import java.util.stream.LongStream;

/** An integer whose bits are several values, in a column each. */
public final class Bits extends Operation {
    /** Adjacent bits of the integer: an unsigned number. */
    public static final class Bit {
        private final Field field;
        private final int shift;
        private final long mask;
        private final int column;
        private final Store store;
        private final int register;
        private final String kind;
        private final long[] allowed;

        /**
         * The {@code width} bits above {@code shift} others.
         *
         * @param column the column, {@link Operation#NONE} if there is none
         * @param register where the number is kept, {@link Operation#NONE} if nothing needs it
         * @param kind the kind of fault if the number is not one of those allowed
         * @param allowed the allowed numbers, empty for any
         */
        public Bit(
                Field field, int shift, int width, int column, Store store, int register, String kind,
                long... allowed) {
            this.field = field;
            this.shift = shift;
            mask = -1L >>> Long.SIZE - width;
            this.column = column;
            this.store = store;
            this.register = register;
            this.kind = kind;
            this.allowed = allowed;
        }

        private void read(Cursor in, long number, int start) {
            long value = number >>> shift & mask;
            if (allowed.length > 0 && LongStream.of(allowed).noneMatch(one -> one == value)) {
                List<String> words = LongStream.of(allowed).mapToObj(Long::toUnsignedString).toList();
                if (in.names) {
                    in.enter(field);
                }
                throw in.refuse(kind, Words.either(words), Long.toUnsignedString(value), start);
            }
            if (register != NONE) {
                in.keep(register, value, start);
            }
            if (column != NONE) {
                in.row.number(column, store, value);
            }
        }
    }

    private final Coding coding;
    private final Bit[] bits;

    /** The integer, and its bits, the most significant first. */
    public Bits(Coding coding, Bit... bits) {
        super(bits[0].field);
        this.coding = coding;
        this.bits = bits;
    }

    @Override
    int octets() {
        return coding.octets();
    }

    @Override
    void read(Cursor in) {
        enter(in);
        int start = in.at;
        long number = coding.read(in);
        for (Bit bit : bits) {
            bit.read(in, number, start);
        }
    }

    @Override
    void absent(RowWriter row) {
        for (Bit bit : bits) {
            if (bit.column != NONE) {
                row.setNull(bit.column, bit.store);
            }
        }
    }

    @Override
    int room() {
        int room = 0;
        for (Bit bit : bits) {
            room += bit.store == Store.DECIMAL ? 16 : 0;
        }
        return room;
    }
}
