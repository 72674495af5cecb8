// Written by specwire from generator/support/java/Cursor.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;

/**
 * Position in the fast reading of a message: generated code reads one value after another into the columns of a row
 * and finally checks whether all reads succeeded.
 *
 * <p>It reads valid messages only. After a fault, all reads return meaningless values. {@link Message} then reads the
 * same frames with its tables and reports the fault. So each fault is reported in one place, and a row does not depend
 * on which of the two read it.
 *
 * <p>The octets that a row needs are copied into it at once.
 */
public final class Cursor extends Frames {
    private final RowWriter row = new RowWriter();
    /** Index of the next frame. */
    private int index;
    /** Position in the frame, and its end. */
    private int at;
    private int end;
    /** The last integer that was read. */
    private long value;
    private boolean failed;
    private int message;

    private Cursor(int count) {
        super(count);
    }

    /** The cursor at the start of these frames; null if the tables must read them. */
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

    /** Index of the next frame. */
    public int index() {
        return index;
    }

    /** The flags octet at this position; bits in {@code forbidden} announce parts that the message lacks. */
    public int flags(int frame, int offset, int forbidden) {
        int place = place(frame);
        if (place < 0 || offset >= size(place)) {
            return fail();
        }
        int flags = octets[begin(place) + offset] & 0xff;
        failed |= (flags & forbidden) != 0;
        return flags;
    }

    /** Begins the row of a message; {@code more} is its expected size besides the octets of the frames. */
    public void begin(int columns, int more) {
        row.begin(columns, more + (int) total());
    }

    /** Fails if the condition is false. */
    public void require(boolean condition) {
        failed |= !condition;
    }

    /** Moves to the next frame; at least {@code reserved} frames must follow it. */
    public void open(int reserved) {
        if (index < count - reserved) {
            at = bounds[2 * index];
            end = bounds[2 * index + 1];
        } else {
            fail();
        }
        index++;
    }

    /** Fails if octets of the frame are left. */
    public void close() {
        failed |= at != end;
    }

    /** Number of octets left in the frame. */
    public int left() {
        return end - at;
    }

    /** Reads a constant. */
    public void constant(int size, long wanted) {
        if (need(size)) {
            failed |= number(octets, at, size) != wanted;
            at += size;
        }
    }

    /** Skips octets without meaning. */
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

    /** Skips an absent column of eight-octet integers. */
    public void noDecimal(int column) {
        row.noDecimal(column);
    }

    /** The last integer that was read. */
    public long value() {
        return value;
    }

    /** Reads the size of the next value, at most the number of octets left. */
    public int length(int size) {
        long length = unsigned(size);
        if (length < 0 || length > end - at) {
            return fail();
        }
        return (int) length;
    }

    /** Reads opaque octets. */
    public void octets(int column, int size) {
        if (need(size)) {
            row.octets(column, octets, at, size);
            at += size;
        }
    }

    /** Reads the whole next frame; see {@link #open}. */
    public void frame(int column, int reserved) {
        open(reserved);
        octets(column, end - at);
    }

    /** Reads opaque octets with a minimum size. */
    public void octets(int column, int size, int minimum) {
        failed |= size < minimum;
        octets(column, size);
    }

    /** Reads a text. */
    public void text(int column, int size) {
        int from = at;
        if (pass(size)) {
            row.octets(column, octets, from, size);
        }
    }

    /** Skips a text; returns whether it is valid UTF-8. */
    private boolean pass(int size) {
        if (need(size)) {
            failed = Utf8.fault(octets, at, at + size) >= 0;
            at += size;
        }
        return !failed;
    }

    /** Reads a text that may end with NUL. */
    public void terminated(int column, int size) {
        if (need(size)) {
            row.octets(column, octets, at, content(size));
            at += size;
        }
    }

    /** Size of a text without the NUL that may end it; fails if it contains another. */
    private int content(int size) {
        int last = size > 0 && octets[at + size - 1] == 0 ? size - 1 : size;
        failed |= Utf8.fault(octets, at, at + last) >= 0;
        for (int place = at; place < at + last; place++) {
            failed |= octets[place] == 0;
        }
        return last;
    }

    /** Whether the rest of the frame equals these octets. */
    public boolean filled(int size, long wanted) {
        return !failed && end - at == size && number(octets, at, size) == wanted;
    }

    /** Reads a count of entries of at least one octet each. */
    private int entries(int size, int minimum) {
        int number = length(size);
        failed |= number < minimum;
        return failed ? 0 : number;
    }

    /** Reads a counted list of texts with length prefixes. */
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

    /** Reads counted names and values, texts with length prefixes. */
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

    /** Reads counted texts, each split into name and value at the first or last {@code =}. */
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

    /** Kind of a value that fills a frame. */
    public enum Whole { OCTETS, TEXT, TERMINATED }

    /** Reads frames up to an empty one, after which at least {@code reserved} frames must follow. */
    public void stack(int column, Whole kind, int reserved) {
        int last = index;
        while (last < count - reserved && size(last) > 0) {
            // Without NUL, the frame would be the empty one that ends the stack.
            failed |= kind == Whole.TERMINATED && size(last) == 1 && octets[begin(last)] == 0;
            last++;
        }
        frames(column, kind, last);
        open(reserved);
    }

    /** Reads all remaining frames. */
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

    /** Sets the number of the message; returns whether it is complete. */
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

    /** Ends reading after a fault. */
    private int fail() {
        failed = true;
        at = end;
        return 0;
    }
}
