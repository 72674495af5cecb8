// Written by specwire from generator/support/java/Frames.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.BinaryView;

/** The frames of one message in Spark's memory, and the octets that identify the message. */
public abstract class Frames {
    /** Larger messages are left to the tables. */
    static final int MOST_FRAMES = 1024;

    /** Largest message that is read fast: its row can be several times as large if entries are small. */
    private static final int MOST_OCTETS = 1 << 24;

    private static final VarHandle SHORTS =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle INTEGERS =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle LONGS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final byte[] NOTHING = {};

    /** Number of frames. */
    final int count;
    /** Array that contains all frames. */
    byte[] octets = NOTHING;
    /** Where each frame begins and ends in the array. */
    final int[] bounds;
    private long total;

    Frames(int count) {
        this.count = count;
        bounds = new int[2 * count];
    }

    /** Locates the octets of the frames; returns false for null frames or too many octets. */
    final boolean take(ArrayData frames) {
        boolean objects = frames instanceof GenericArrayData;
        return !objects && find(frames) || total <= MOST_OCTETS && copy(frames);
    }

    /** Locates the frames in Spark's memory; returns false for null frames or several arrays. */
    private boolean find(ArrayData frames) {
        for (int number = 0; number < count; number++) {
            BinaryView view = frames.getBinaryView(number);
            if (view == null || !(view.getBaseObject() instanceof byte[] base) || number > 0 && base != octets) {
                return false;
            }
            octets = base;
            int from = (int) (view.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
            bounds[2 * number] = from;
            bounds[2 * number + 1] = from + view.numBytes();
            total += view.numBytes();
        }
        return total <= MOST_OCTETS;
    }

    /** Copies the frames into one array; returns false for null frames. */
    private boolean copy(ArrayData frames) {
        byte[][] found = new byte[count][];
        total = 0;
        for (int number = 0; number < count; number++) {
            found[number] = frames.isNullAt(number) ? null : frames.getBinary(number);
            total += found[number] == null ? MOST_OCTETS + 1 : found[number].length;
            if (total > MOST_OCTETS) {
                return false;
            }
        }
        octets = new byte[(int) total];
        int from = 0;
        for (int number = 0; number < count; number++) {
            int size = found[number].length;
            System.arraycopy(found[number], 0, octets, from, size);
            bounds[2 * number] = from;
            from += size;
            bounds[2 * number + 1] = from;
        }
        return true;
    }

    final int begin(int frame) {
        return bounds[2 * frame];
    }

    final int size(int frame) {
        return bounds[2 * frame + 1] - bounds[2 * frame];
    }

    /** The octets of all frames. */
    final long total() {
        return total;
    }

    /** Index of a frame, counted from the end if negative; -1 if it is missing. */
    final int place(int frame) {
        int place = frame < 0 ? frame + count : frame;
        return place < count ? Math.max(place, -1) : -1;
    }

    /** The first octets of a frame, at most seven, as a number; -1 if there are fewer. */
    public final long head(int frame, int size) {
        int place = place(frame);
        return place < 0 || size(place) < size ? -1 : number(octets, begin(place), size);
    }

    /** The size of a frame followed by its octets, as one number; -1 for more than seven octets. */
    public final long whole(int frame) {
        int place = place(frame);
        if (place < 0 || size(place) > 7) {
            return -1;
        }
        return (long) size(place) << 56 | number(octets, begin(place), size(place));
    }

    /** Whether a frame begins with these octets. */
    public final boolean begins(int frame, int size, long wanted) {
        int place = place(frame);
        return place >= 0 && size(place) >= size && number(octets, begin(place), size) == wanted;
    }

    /** Whether a frame equals these octets. */
    public final boolean fills(int frame, int size, long wanted) {
        return begins(frame, size, wanted) && size(place(frame)) == size;
    }

    /** Number of frames. */
    public final int frames() {
        return count;
    }

    /** Reads an unsigned integer. */
    static long number(byte[] octets, int from, int size) {
        switch (size) {
            case 1:
                return octets[from] & 0xff;
            case 2:
                return (short) SHORTS.get(octets, from) & 0xffff;
            case 4:
                return (int) INTEGERS.get(octets, from) & 0xffff_ffffL;
            case 8:
                return (long) LONGS.get(octets, from);
            default:
                long value = 0;
                for (int place = from; place < from + size; place++) {
                    value = value << 8 | octets[place] & 0xff;
                }
                return value;
        }
    }
}
