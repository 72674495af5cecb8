package specwire.generated.java;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.bitset.BitSetMethods;

/**
 * Writer of the values of one message as the octets of a Spark row, which Spark copies unchanged.
 *
 * <p>The octets equal those that Spark's {@code UnsafeRowWriter} writes for these values, because Spark groups rows by
 * their octets. A struct has a null bit for each column, eight octets for each column, then the values that do not
 * fit, each aligned to eight octets; the eight octets of such a column hold the position in the struct, and the size.
 * A list has the same format, preceded by the number of its items; its items can have less than eight octets.
 *
 * <p>The number of items is known only at the end of a list. Until then, {@link #items} keeps what a struct has in its
 * columns, and the values that do not fit stand where the list begins.
 *
 * <p>Each row has its own memory, so it is not changed by the next row.
 */
final class RowWriter {
    /** Column of an item of a list. */
    static final int ITEM = -1;

    private static final int WORD = 8;
    /** Octets reserved in a struct for a decimal of more than 18 digits, however small it is. */
    private static final int DECIMAL = 16;

    private static final VarHandle SHORTS = view(short[].class);
    private static final VarHandle INTEGERS = view(int[].class);
    private static final VarHandle LONGS = view(long[].class);
    private static final VarHandle FIRST_LOWEST =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle DIGITS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final long[] NONE = {};

    private byte[] row;
    /** Position of the next value that does not fit in its column. */
    private int at;
    /** Where the innermost struct or list begins, and the first column of the struct. */
    private int origin;
    private int first;
    /** The items of all lists that have not ended. */
    private long[] items = NONE;
    private int depth;

    private static VarHandle view(Class<?> of) {
        return MethodHandles.byteArrayViewVarHandle(of, ByteOrder.nativeOrder());
    }

    private static int bits(int columns) {
        return (columns + Long.SIZE - 1) / Long.SIZE * WORD;
    }

    private static int padded(int size) {
        return size + WORD - 1 & -WORD;
    }

    /** Begins a row; {@code room} is its expected size besides the columns. */
    void begin(int columns, long room) {
        int head = bits(columns) + WORD * columns;
        row = new byte[(int) Math.min(head + room, Integer.MAX_VALUE - WORD)];
        at = head;
        origin = 0;
        first = bits(columns);
        depth = 0;
    }

    /** Ends the row. */
    InternalRow end(int columns) {
        UnsafeRow made = new UnsafeRow(columns);
        made.pointTo(row, Platform.BYTE_ARRAY_OFFSET, at);
        return made;
    }

    /** Begins a struct in the current struct or list; returns what {@link #endStruct} needs. */
    long beginStruct(int columns) {
        long outer = (long) origin << Integer.SIZE | first;
        int head = bits(columns) + WORD * columns;
        grow(head);
        origin = at;
        first = at + bits(columns);
        at += head;
        return outer;
    }

    void endStruct(int column, long outer) {
        int begin = origin;
        origin = (int) (outer >> Integer.SIZE);
        first = (int) outer;
        point(column, begin, at - begin);
    }

    /** Begins a list in the current struct or list; its items follow. Returns what {@link #endList} needs. */
    long beginList() {
        long outer = (long) origin << Integer.SIZE | first;
        origin = at;
        return outer;
    }

    /** The state of the writer, for {@link #reset}. */
    long mark() {
        return (long) at << Integer.SIZE | depth;
    }

    /** Discards what was written since {@link #mark}. */
    void reset(long mark) {
        int begin = (int) (mark >> Integer.SIZE);
        Arrays.fill(row, begin, at, (byte) 0);
        at = begin;
        depth = (int) mark;
    }

    /** Number of items of all lists that have not ended. */
    int depth() {
        return depth;
    }

    /** Ends a list, whose items are those from {@code from} on. */
    void endList(int column, long outer, int from, Store store) {
        int number = depth - from;
        int places = WORD + bits(number);
        int head = places + padded(number * store.width);
        grow(head);
        System.arraycopy(row, origin, row, origin + head, at - origin);
        LONGS.set(row, origin, (long) number);
        for (int word = origin + WORD; word < origin + head; word += WORD) {
            LONGS.set(row, word, 0L);
        }
        long moved = store.isPointer() ? (long) head << Integer.SIZE : 0;
        for (int item = 0; item < number; item++) {
            set(origin + places + item * store.width, store.width, items[from + item] + moved);
        }
        depth = from;
        at += head;
        endStruct(column, outer);
    }

    /** Marks a column as null. */
    void setNull(int column, Store store) {
        BitSetMethods.set(row, Platform.BYTE_ARRAY_OFFSET + origin, column);
        if (store == Store.DECIMAL) {
            // Spark reserves octets for it nevertheless.
            grow(DECIMAL);
            point(column, at, 0);
            at += DECIMAL;
        }
    }

    /** Writes a number; those with a point as their bits. */
    void number(int column, Store store, long value) {
        if (store == Store.DECIMAL) {
            decimal(column, value);
        } else if (column == ITEM) {
            push(value);
        } else {
            set(first + WORD * column, store.width, value);
        }
    }

    /** Writes an unsigned integer as a decimal: its shortest two's complement. */
    private void decimal(int column, long value) {
        int size = (Long.SIZE - Long.numberOfLeadingZeros(value)) / Byte.SIZE + 1;
        int reserved = column == ITEM ? padded(size) : DECIMAL;
        grow(reserved);
        if (size > WORD) {
            DIGITS.set(row, at + 1, value);
        } else {
            DIGITS.set(row, at, value << Byte.SIZE * (WORD - size));
        }
        point(column, at, size);
        at += reserved;
    }

    /** Writes octets or a text. */
    void octets(int column, byte[] base, int from, int size) {
        int needed = padded(size);
        grow(needed);
        if (size > 0 && size <= WORD && base.length - from >= WORD) {
            // Read one word and mask the rest: many values are that small.
            long word = (long) FIRST_LOWEST.get(base, from);
            FIRST_LOWEST.set(row, at, word & -1L >>> Byte.SIZE * (WORD - size));
        } else {
            System.arraycopy(base, from, row, at, size);
        }
        point(column, at, size);
        at += needed;
    }

    /** Records position and size of a value in its column. */
    private void point(int column, int where, int size) {
        long word = (long) (where - origin) << Integer.SIZE | size;
        if (column == ITEM) {
            push(word);
        } else {
            LONGS.set(row, first + WORD * column, word);
        }
    }

    private void push(long item) {
        if (depth == items.length) {
            items = Arrays.copyOf(items, Math.max(8, 2 * depth));
        }
        items[depth++] = item;
    }

    private void set(int place, int width, long value) {
        switch (width) {
            case 1 -> row[place] = (byte) value;
            case 2 -> SHORTS.set(row, place, (short) value);
            case 4 -> INTEGERS.set(row, place, (int) value);
            default -> LONGS.set(row, place, value);
        }
    }

    private void grow(int more) {
        if (row.length - at < more) {
            long wanted = Math.max(2L * row.length, (long) at + more);
            row = Arrays.copyOf(row, (int) Math.min(wanted, Integer.MAX_VALUE - WORD));
        }
    }
}
