// Written by specwire from generator/support/java/RowWriter.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/**
 * Writer of the values of one message as the octets of a Spark row, which Spark copies unchanged.
 *
 * <p>The octets equal those that Spark's {@code UnsafeRowWriter} writes for these values, because Spark groups rows by
 * their octets. A row has a null bit for each column, eight octets for each column, then the values that do not fit,
 * each aligned to eight octets; the eight octets of such a column hold position and size. A list has the same format,
 * preceded by the number of its items.
 *
 * <p>Each row has its own memory, so it is not changed by the next row.
 */
final class RowWriter {
    /** Largest number of columns of a row: one word holds the null bits. */
    static final int MOST_COLUMNS = 64;

    private static final int WORD = 8;
    /** Octets reserved for a decimal of more than 18 digits, however small it is. */
    private static final int DECIMAL = 16;

    private static final VarHandle SHORTS = view(short[].class);
    private static final VarHandle INTEGERS = view(int[].class);
    private static final VarHandle LONGS = view(long[].class);
    private static final VarHandle FIRST_LOWEST =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle DIGITS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private int columns;
    private byte[] row;
    /** Position of the next value that does not fit in its column. */
    private int at;
    /** Bit for each null column. */
    private long nulls;
    /** Start of the current list. */
    private int list;
    /** Position of the eight octets of its first item. */
    private int items;

    private static VarHandle view(Class<?> of) {
        return MethodHandles.byteArrayViewVarHandle(of, ByteOrder.nativeOrder());
    }

    /** Begins a row with all columns null; {@code room} is the expected size besides the columns. */
    void begin(int columns, int room) {
        this.columns = columns;
        at = WORD + WORD * columns;
        row = new byte[at + room];
        nulls = columns == MOST_COLUMNS ? -1L : (1L << columns) - 1;
    }

    /** Ends the row. */
    InternalRow end() {
        LONGS.set(row, 0, nulls);
        UnsafeRow made = new UnsafeRow(columns);
        made.pointTo(row, Platform.BYTE_ARRAY_OFFSET, at);
        return made;
    }

    private int place(int column) {
        nulls &= ~(1L << column);
        return WORD + WORD * column;
    }

    void truth(int column) {
        row[place(column)] = 1;
    }

    /** Writes an unsigned integer of 1 to 7 octets in its Spark type. */
    void integer(int column, long value, int size) {
        int place = place(column);
        switch (size) {
            case 1 -> SHORTS.set(row, place, (short) value);
            case 2, 3 -> INTEGERS.set(row, place, (int) value);
            default -> LONGS.set(row, place, value);
        }
    }

    /** Writes an unsigned integer of eight octets as a decimal: its shortest two's complement. */
    void decimal(int column, long value) {
        grow(DECIMAL);
        int size = (Long.SIZE - Long.numberOfLeadingZeros(value)) / Byte.SIZE + 1;
        if (size > WORD) {
            DIGITS.set(row, at + 1, value);
        } else {
            DIGITS.set(row, at, value << Byte.SIZE * (WORD - size));
        }
        point(place(column), 0, size);
        at += DECIMAL;
    }

    /** Skips a null column of decimals, which has reserved octets nevertheless. */
    void noDecimal(int column) {
        grow(DECIMAL);
        point(WORD + WORD * column, 0, 0);
        at += DECIMAL;
    }

    /** Writes octets or a text. */
    void octets(int column, byte[] base, int from, int size) {
        put(place(column), 0, base, from, size);
    }

    /** Begins a list; {@link #item} or {@link #pair} then writes each item. */
    void list(int column, int count) {
        // The column stores the position first; the size is known when the list ends.
        point(place(column), 0, 0);
        list = at;
        items = at + WORD + WORD * ((count + Long.SIZE - 1) / Long.SIZE);
        int fixed = items + WORD * count - at;
        grow(fixed);
        LONGS.set(row, at, (long) count);
        at += fixed;
    }

    /** Ends the list in a column. */
    void endList(int column) {
        point(WORD + WORD * column, 0, list, at - list);
    }

    /** Writes an item of a list: octets, or a text. */
    void item(int number, byte[] base, int from, int size) {
        put(items + WORD * number, list, base, from, size);
    }

    /** Writes an item that is a row of two texts from the same array. */
    void pair(int number, byte[] base, int from, int size, int secondFrom, int secondSize) {
        int own = at;
        grow(3 * WORD);
        at += 3 * WORD;
        put(own + WORD, own, base, from, size);
        put(own + 2 * WORD, own, base, secondFrom, secondSize);
        point(items + WORD * number, list, own, at - own);
    }

    private void put(int place, int origin, byte[] base, int from, int size) {
        int padded = size + WORD - 1 & -WORD;
        grow(padded);
        if (size > 0 && size <= WORD && base.length - from >= WORD) {
            // Read one word and mask the rest: many values are that small.
            long word = (long) FIRST_LOWEST.get(base, from);
            FIRST_LOWEST.set(row, at, word & -1L >>> Byte.SIZE * (WORD - size));
        } else {
            System.arraycopy(base, from, row, at, size);
        }
        point(place, origin, size);
        at += padded;
    }

    /** Records position and size of the next octets in the column. */
    private void point(int place, int origin, int size) {
        point(place, origin, at, size);
    }

    private void point(int place, int origin, int where, int size) {
        LONGS.set(row, place, (long) (where - origin) << Integer.SIZE | size);
    }

    private void grow(int more) {
        if (row.length - at < more) {
            row = Arrays.copyOf(row, Math.max(2 * row.length, at + more));
        }
    }
}
