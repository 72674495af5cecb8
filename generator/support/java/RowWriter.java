package specwire.generated.java;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/**
 * The values of one message as the octets of a row of Spark, which copies them as they are.
 *
 * <p>They are the very octets that Spark's own {@code UnsafeRowWriter} gives for these values, because Spark groups
 * rows by their octets. A row has a bit for each column that is null, eight octets for each column, then what does not
 * fit into them, each beginning at a multiple of eight octets; there the eight say where it is and how long. A list is
 * the same with the number of its items in front.
 *
 * <p>Each row has memory of its own, so it stays as it is when the next one is made.
 */
final class RowWriter {
    /** The most columns of a row: one word says which are null. */
    static final int MOST_COLUMNS = 64;

    private static final int WORD = 8;
    /** What a decimal of more than 18 digits takes, however small it is. */
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
    /** Where the next value goes that does not fit into a column. */
    private int at;
    /** A bit for each column without a value. */
    private long nulls;
    /** Where the list begins that is written. */
    private int list;
    /** Where the eight octets of its first item are. */
    private int items;

    private static VarHandle view(Class<?> of) {
        return MethodHandles.byteArrayViewVarHandle(of, ByteOrder.nativeOrder());
    }

    /** Begins a row of so many columns, all null; {@code room} octets are expected beside them. */
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

    /** Writes an unsigned integer of so many octets, 1 to 7, in the type that Spark has for it. */
    void integer(int column, long value, int size) {
        int place = place(column);
        switch (size) {
            case 1 -> SHORTS.set(row, place, (short) value);
            case 2, 3 -> INTEGERS.set(row, place, (int) value);
            default -> LONGS.set(row, place, value);
        }
    }

    /** Writes an unsigned integer of eight octets as a decimal: the octets of its two's complement, as few as do. */
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

    /** Passes a column of decimals that has no value: it has its place nevertheless. */
    void noDecimal(int column) {
        grow(DECIMAL);
        point(WORD + WORD * column, 0, 0);
        at += DECIMAL;
    }

    /** Writes octets, or a text of so many. */
    void octets(int column, byte[] base, int from, int size) {
        put(place(column), 0, base, from, size);
    }

    /** Begins a list of so many items, of which {@link #item} or {@link #pair} writes one after the other. */
    void list(int column, int count) {
        // The column says where it is before anybody knows how long; then the list ends.
        point(place(column), 0, 0);
        list = at;
        items = at + WORD + WORD * ((count + Long.SIZE - 1) / Long.SIZE);
        int fixed = items + WORD * count - at;
        grow(fixed);
        LONGS.set(row, at, (long) count);
        at += fixed;
    }

    /** Says that the list in a column is whole. */
    void endList(int column) {
        point(WORD + WORD * column, 0, list, at - list);
    }

    /** Writes an item of a list: octets, or a text. */
    void item(int number, byte[] base, int from, int size) {
        put(items + WORD * number, list, base, from, size);
    }

    /** Writes an item of a list that is a row of two texts, which stand in the same octets. */
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
            // As a word without what is behind: many values are that small.
            long word = (long) FIRST_LOWEST.get(base, from);
            FIRST_LOWEST.set(row, at, word & -1L >>> Byte.SIZE * (WORD - size));
        } else {
            System.arraycopy(base, from, row, at, size);
        }
        point(place, origin, size);
        at += padded;
    }

    /** Notes that what comes next, so many octets, is the value that belongs to the place. */
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
