package specwire.generated.java;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;

/**
 * Where the quick reading of a message is: generated code reads value after value into the columns of a row, and asks
 * at the end whether all went well.
 *
 * <p>It takes messages that are as the grammar has them and no others. Where something is wrong it stays at that and
 * gives values without meaning; {@link Message} then reads the same frames by its tables, and finds what it was. So
 * every fault is told in one place, and no row depends on which of the two read it.
 *
 * <p>What a row needs of the frames is copied into it at once.
 */
public final class Cursor extends Frames {
    private final RowWriter row = new RowWriter();
    /** The number of the frame that comes next. */
    private int index;
    /** Where the frame is read, and where it ends. */
    private int at;
    private int end;
    /** The integer that was read last. */
    private long value;
    private boolean failed;
    private int message;

    private Cursor(int count) {
        super(count);
    }

    /** The cursor at the beginning of these frames; null where the tables must read them. */
    static Cursor over(ArrayData frames) {
        Cursor made = frames.numElements() > MOST_FRAMES ? null : new Cursor(frames.numElements());
        return made != null && made.take(frames) ? made : null;
    }

    /** The number of the message that was read. */
    int message() {
        return message;
    }

    /** Ends the row of a message that was read. */
    InternalRow row() {
        return row.end();
    }

    /** The number of the frame that comes next. */
    public int index() {
        return index;
    }

    /** The octet of flags that stands there; those {@code forbidden} announce what the message does not have. */
    public int flags(int frame, int offset, int forbidden) {
        int place = place(frame);
        if (place < 0 || offset >= size(place)) {
            return fail();
        }
        int flags = octets[begin(place) + offset] & 0xff;
        failed |= (flags & forbidden) != 0;
        return flags;
    }

    /** Begins the row of a message of so many columns, which take {@code more} octets beside those of the frames. */
    public void begin(int columns, int more) {
        row.begin(columns, more + (int) total());
    }

    /** Fails where that is not so. */
    public void require(boolean condition) {
        failed |= !condition;
    }

    /** Goes on to the next frame, behind which {@code reserved} others must be. */
    public void open(int reserved) {
        if (index < count - reserved) {
            at = bounds[2 * index];
            end = bounds[2 * index + 1];
        } else {
            fail();
        }
        index++;
    }

    /** Sees to it that nothing is left of the frame. */
    public void close() {
        failed |= at != end;
    }

    /** How many octets are left of the frame. */
    public int left() {
        return end - at;
    }

    /** Reads octets that are always the same. */
    public void constant(int size, long wanted) {
        if (need(size)) {
            failed |= number(octets, at, size) != wanted;
            at += size;
        }
    }

    /** Passes octets that mean nothing. */
    public void skip(int size) {
        if (need(size)) {
            at += size;
        }
    }

    /** Reads an unsigned integer of 1 to 7 octets. */
    public void integer(int column, int size) {
        row.integer(column, unsigned(size), size);
    }

    /** Reads an unsigned integer of 8 octets. */
    public void decimal(int column) {
        row.decimal(column, unsigned(8));
    }

    /** Passes a column of such integers that has no value. */
    public void noDecimal(int column) {
        row.noDecimal(column);
    }

    /** The integer that was read last. */
    public long value() {
        return value;
    }

    /** Reads the number of octets of what comes next: as many as are left, or fewer. */
    public int length(int size) {
        long length = unsigned(size);
        if (length < 0 || length > end - at) {
            return fail();
        }
        return (int) length;
    }

    /** Reads so many opaque octets. */
    public void octets(int column, int size) {
        if (need(size)) {
            row.octets(column, octets, at, size);
            at += size;
        }
    }

    /** Reads the next frame whole, as {@link #open} goes to it. */
    public void frame(int column, int reserved) {
        open(reserved);
        octets(column, end - at);
    }

    /** Reads so many opaque octets, which are that many at least. */
    public void octets(int column, int size, int minimum) {
        failed |= size < minimum;
        octets(column, size);
    }

    /** Reads a text of so many octets. */
    public void text(int column, int size) {
        int from = at;
        if (pass(size)) {
            row.octets(column, octets, from, size);
        }
    }

    /** Goes past a text of so many octets; returns whether it is one. */
    private boolean pass(int size) {
        if (need(size)) {
            failed = Utf8.fault(octets, at, at + size) >= 0;
            at += size;
        }
        return !failed;
    }

    /** Reads a text of so many octets, of which the last may be the NUL that ends it. */
    public void terminated(int column, int size) {
        if (need(size)) {
            row.octets(column, octets, at, content(size));
            at += size;
        }
    }

    /** How many octets of a text there are without the NUL that may end it; it must have no other. */
    private int content(int size) {
        int last = size > 0 && octets[at + size - 1] == 0 ? size - 1 : size;
        failed |= Utf8.fault(octets, at, at + last) >= 0;
        for (int place = at; place < at + last; place++) {
            failed |= octets[place] == 0;
        }
        return last;
    }

    /** Whether these octets and no others are left of the frame. */
    public boolean filled(int size, long wanted) {
        return !failed && end - at == size && number(octets, at, size) == wanted;
    }

    /** Reads a count of entries, each of which takes an octet or more. */
    private int entries(int size, int minimum) {
        int number = length(size);
        failed |= number < minimum;
        return failed ? 0 : number;
    }

    /** Reads a counted list of texts, each behind its length. */
    public void texts(int column, int countSize, int lengthSize, int minimum) {
        int entries = entries(countSize, minimum);
        row.list(column, entries);
        for (int number = 0; number < entries && !failed; number++) {
            int size = length(lengthSize);
            int from = at;
            if (pass(size)) {
                row.item(number, octets, from, size);
            }
        }
        row.endList(column);
    }

    /** Reads counted names and values, texts behind their lengths. */
    public void pairs(int column, int countSize, int nameSize, int valueSize, int minimum) {
        int entries = entries(countSize, minimum);
        row.list(column, entries);
        for (int number = 0; number < entries && !failed; number++) {
            int name = length(nameSize);
            int nameFrom = at;
            pass(name);
            int size = length(valueSize);
            int from = at;
            if (pass(size)) {
                row.pair(number, octets, nameFrom, name, from, size);
            }
        }
        row.endList(column);
    }

    /** Reads counted texts that hold a name and a value each, divided at the first or the last {@code =}. */
    public void divided(int column, int countSize, int lengthSize, boolean first, int minimum) {
        int entries = entries(countSize, minimum);
        row.list(column, entries);
        for (int number = 0; number < entries && !failed; number++) {
            int size = length(lengthSize);
            int from = at;
            int equals = pass(size) ? equalsSign(from, at, first) : -1;
            if (equals < 0) {
                fail();
            } else {
                row.pair(number, octets, from, equals - from, equals + 1, at - equals - 1);
            }
        }
        row.endList(column);
    }

    private int equalsSign(int from, int stop, boolean first) {
        for (int place = from; first && place < stop; place++) {
            if (octets[place] == '=') {
                return place;
            }
        }
        for (int place = stop - 1; !first && place >= from; place--) {
            if (octets[place] == '=') {
                return place;
            }
        }
        return -1;
    }

    /** What a frame holds that is one value. */
    public enum Whole { OCTETS, TEXT, TERMINATED }

    /** Reads frames up to an empty one, which ends them, behind which {@code reserved} others must be. */
    public void stack(int column, Whole kind, int reserved) {
        int last = index;
        while (last < count - reserved && size(last) > 0) {
            // Without its NUL such a frame would be the one that ends the stack.
            failed |= kind == Whole.TERMINATED && size(last) == 1 && octets[begin(last)] == 0;
            last++;
        }
        frames(column, kind, last);
        open(reserved);
    }

    /** Reads all frames that are left. */
    public void rest(int column, Whole kind) {
        frames(column, kind, count);
    }

    private void frames(int column, Whole kind, int stop) {
        int entries = Math.max(stop - index, 0);
        row.list(column, entries);
        for (int number = 0; number < entries && !failed; number++) {
            open(0);
            int size = end - at;
            if (kind == Whole.TERMINATED) {
                size = content(size);
            } else if (kind == Whole.TEXT) {
                failed |= Utf8.fault(octets, at, end) >= 0;
            }
            row.item(number, octets, at, size);
        }
        row.endList(column);
    }

    /** Says which message was read; returns whether it is whole. */
    public boolean done(int number) {
        message = number;
        return !failed && index == count;
    }

    /** The same for a message without values. */
    public boolean present(int number) {
        row.begin(1, 0);
        row.truth(0);
        return done(number);
    }

    private long unsigned(int size) {
        if (!need(size)) {
            return value = 0;
        }
        value = number(octets, at, size);
        at += size;
        return value;
    }

    private boolean need(int size) {
        if (size > end - at) {
            fail();
        }
        return !failed;
    }

    /** Nothing more can be read. */
    private int fail() {
        failed = true;
        at = end;
        return 0;
    }
}
