// Written by specwire from generator/support/java/Cursor.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Where the quick reading of a message is: generated code reads value after value, and asks at the end whether all
 * went well.
 *
 * <p>It takes messages that are as the grammar has them and no others. Where something is wrong it stays at that and
 * gives values without meaning; {@link Message} then reads the same frames by its tables, and finds what it was. So
 * every fault is told in one place, and no row depends on which of the two read it.
 *
 * <p>Frames are read where Spark keeps them. Texts refer to these octets, as do those that Spark reads from columns
 * itself; whatever keeps a row copies it.
 */
public final class Cursor {
    private static final VarHandle SHORTS =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle INTEGERS =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final byte[] NOTHING = {};

    private final ArrayData frames;
    private final int count;
    /** Whether frames may be read in place; an array of Java objects has them as they are. */
    private final boolean inPlace;
    /** The number of the frame that comes next. */
    private int index;
    private byte[] octets = NOTHING;
    private int at;
    private int end;
    /** The frame that is looked at, -1 for none; its octets begin at {@code begin}. */
    private int looked = -1;
    private int begin;
    /** The frame as a text, where Spark has it so. */
    private UTF8String view;
    /** The last frame, which tells messages apart in some protocols and is then read again. */
    private byte[] lastOctets;
    private int lastBegin;
    private int lastEnd;
    private long total;
    private boolean failed;
    private int message = -1;

    Cursor(ArrayData frames) {
        this.frames = frames;
        count = frames.numElements();
        inPlace = !(frames instanceof GenericArrayData);
    }

    /** The number of the message, -1 where the frames are not a whole one. */
    int message() {
        return message;
    }

    /** The octets of all frames that were read. */
    long total() {
        return total;
    }

    /** Whether the first octets of a frame are these; a frame is counted from the end where its number is negative. */
    public boolean begins(int frame, int size, long wanted) {
        return look(frame < 0 ? frame + count : frame) && end - begin >= size && number(begin, size) == wanted;
    }

    /** Whether a frame has these octets and no others. */
    public boolean fills(int frame, int size, long wanted) {
        return begins(frame, size, wanted) && end - begin == size;
    }

    /** How many frames there are. */
    public int frames() {
        return count;
    }

    /** The number of the frame that comes next. */
    public int index() {
        return index;
    }

    /** The octet of flags that stands there; those {@code forbidden} announce what the message does not have. */
    public int flags(int frame, int offset, int forbidden) {
        if (!look(frame < 0 ? frame + count : frame) || offset >= end - begin) {
            return fail();
        }
        int flags = octets[begin + offset] & 0xff;
        failed |= (flags & forbidden) != 0;
        return flags;
    }

    /** Fails where that is not so. */
    public void require(boolean condition) {
        failed |= !condition;
    }

    /** Goes on to the next frame, behind which {@code reserved} others must be. */
    public void open(int reserved) {
        if (index < count - reserved && look(index)) {
            at = begin;
            total += end - begin;
        } else {
            fail();
        }
        index++;
    }

    /** Reads the next frame whole, as {@link #open} goes to it. */
    public Object frame(int reserved) {
        if (index >= count - reserved || frames.isNullAt(index)) {
            fail();
            return NOTHING;
        }
        byte[] found = frames.getBinary(index++);
        total += found.length;
        return found;
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
            failed |= number(at, size) != wanted;
            at += size;
        }
    }

    /** Passes octets that mean nothing. */
    public void skip(int size) {
        if (need(size)) {
            at += size;
        }
    }

    /** Reads an unsigned integer of 1 to 8 octets. */
    public Object integer(int size) {
        return Unsigned.boxed(unsigned(size), size);
    }

    /** Reads an unsigned integer that is one of these. */
    public Object integer(int size, long... members) {
        long value = unsigned(size);
        boolean known = false;
        for (long member : members) {
            known |= member == value;
        }
        failed |= !known;
        return Unsigned.boxed(value, size);
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
    public Object octets(int size) {
        if (!need(size)) {
            return NOTHING;
        }
        int from = at;
        at += size;
        return Arrays.copyOfRange(octets, from, at);
    }

    /** Reads so many opaque octets, which are that many at least. */
    public Object octets(int size, int minimum) {
        failed |= size < minimum;
        return octets(size);
    }

    /** Reads a text of so many octets. */
    public UTF8String text(int size) {
        if (!need(size)) {
            return UTF8String.EMPTY_UTF8;
        }
        int from = at;
        at += size;
        failed |= Utf8.fault(octets, from, at) >= 0;
        return textAt(from, size);
    }

    private UTF8String textAt(int from, int size) {
        boolean whole = view != null && from == begin && from + size == end;
        return whole ? view : UTF8String.fromBytes(octets, from, size);
    }

    /** Reads a text of so many octets, of which the last may be the NUL that ends it. */
    public UTF8String terminated(int size) {
        if (!need(size)) {
            return UTF8String.EMPTY_UTF8;
        }
        int from = at;
        at += size;
        int last = size > 0 && octets[at - 1] == 0 ? at - 1 : at;
        failed |= Utf8.fault(octets, from, last) >= 0;
        for (int place = from; place < last; place++) {
            failed |= octets[place] == 0;
        }
        return textAt(from, last - from);
    }

    /** Reads a word that fills the frame: one of so many octets each, given as their size and their number in turn. */
    public UTF8String word(long... options) {
        boolean known = false;
        for (int option = 0; option < options.length && !failed; option += 2) {
            int size = (int) options[option];
            known |= end - at == size && number(at, size) == options[option + 1];
        }
        failed |= !known;
        return text(end - at);
    }

    /** Reads a count of entries, each of which takes an octet or more. */
    private int entries(int size, int minimum) {
        int number = length(size);
        failed |= number < minimum;
        return failed ? 0 : number;
    }

    /** Reads a counted list of texts, each behind its length. */
    public Object texts(int countSize, int lengthSize, int minimum) {
        Object[] found = new Object[entries(countSize, minimum)];
        for (int number = 0; number < found.length && !failed; number++) {
            found[number] = text(length(lengthSize));
        }
        return new GenericArrayData(found);
    }

    /** Reads counted names and values, texts behind their lengths. */
    public Object pairs(int countSize, int nameSize, int valueSize, int minimum) {
        Object[] found = new Object[entries(countSize, minimum)];
        for (int number = 0; number < found.length && !failed; number++) {
            UTF8String name = text(length(nameSize));
            found[number] = new GenericInternalRow(new Object[] {name, text(length(valueSize))});
        }
        return new GenericArrayData(found);
    }

    /** Reads counted texts that hold a name and a value each, divided at the first or the last {@code =}. */
    public Object divided(int countSize, int lengthSize, boolean first, int minimum) {
        Object[] found = new Object[entries(countSize, minimum)];
        for (int number = 0; number < found.length && !failed; number++) {
            int size = length(lengthSize);
            text(size);
            found[number] = failed ? null : pair(at - size, at, first);
        }
        return new GenericArrayData(found);
    }

    private Object pair(int from, int stop, boolean first) {
        int step = first ? 1 : -1;
        for (int place = first ? from : stop - 1; place >= from && place < stop; place += step) {
            if (octets[place] == '=') {
                return new GenericInternalRow(new Object[] {
                    UTF8String.fromBytes(octets, from, place - from),
                    UTF8String.fromBytes(octets, place + 1, stop - place - 1),
                });
            }
        }
        failed = true;
        return null;
    }

    /** What a frame holds that is one value. */
    public enum Whole { OCTETS, TEXT, TERMINATED }

    /** Reads frames up to an empty one, which ends them, behind which {@code reserved} others must be. */
    public Object stack(Whole kind, int reserved) {
        List<Object> found = new ArrayList<>(4);
        open(reserved);
        while (at < end) {
            found.add(whole(kind));
            // Without its NUL such a frame would be the one that ends the stack.
            failed |= kind == Whole.TERMINATED && end - begin == 1 && octets[begin] == 0;
            open(reserved);
        }
        return new GenericArrayData(found.toArray());
    }

    /** Reads all frames that are left. */
    public Object rest(Whole kind) {
        Object[] found = new Object[count - Math.min(index, count)];
        for (int number = 0; number < found.length; number++) {
            open(0);
            found[number] = whole(kind);
        }
        return new GenericArrayData(found);
    }

    private Object whole(Whole kind) {
        return switch (kind) {
            case OCTETS -> octets(left());
            case TEXT -> text(left());
            case TERMINATED -> terminated(left());
        };
    }

    /** Says which message was read; gives the values where it is whole, else null. */
    public Object[] done(int number, Object[] values) {
        if (failed || index != count) {
            return null;
        }
        message = number;
        return values.length > 0 ? values : Fields.present();
    }

    private long unsigned(int size) {
        if (!need(size)) {
            return 0;
        }
        long value = number(at, size);
        at += size;
        return value;
    }

    private long number(int from, int size) {
        switch (size) {
            case 1:
                return octets[from] & 0xff;
            case 2:
                return (short) SHORTS.get(octets, from) & 0xffff;
            case 4:
                return (int) INTEGERS.get(octets, from) & 0xffff_ffffL;
            default:
                long value = 0;
                for (int place = from; place < from + size; place++) {
                    value = value << 8 | octets[place] & 0xff;
                }
                return value;
        }
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

    /** Finds the octets of a frame; returns whether it is there and known. */
    private boolean look(int frame) {
        if (frame == looked) {
            return true;
        }
        if (frame < 0 || frame >= count || frames.isNullAt(frame)) {
            return false;
        }
        looked = frame;
        if (frame == count - 1) {
            if (lastOctets == null) {
                find(frame);
                lastOctets = octets;
                lastBegin = begin;
                lastEnd = end;
            } else {
                view = null;
                place(lastOctets, lastBegin, lastEnd);
            }
        } else {
            find(frame);
        }
        return true;
    }

    private void find(int frame) {
        view = inPlace ? frames.getUTF8String(frame) : null;
        if (view != null && view.getBaseObject() instanceof byte[] base) {
            int from = (int) (view.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
            place(base, from, from + view.numBytes());
        } else {
            byte[] base = view == null ? frames.getBinary(frame) : view.getBytes();
            place(base, 0, base.length);
        }
    }

    private void place(byte[] base, int from, int to) {
        octets = base;
        begin = from;
        at = from;
        end = to;
    }
}
