package specwire.generated.java;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.BinaryView;

/** The frames of one message, where Spark keeps them, and what tells it from others. */
public abstract class Frames {
    /** Messages beyond are left to the tables. */
    static final int MOST_FRAMES = 1024;

    /** The most octets of a message that is read quickly: a row takes some times as many where entries are small. */
    private static final int MOST_OCTETS = 1 << 24;

    private static final VarHandle SHORTS =
            MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle INTEGERS =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle LONGS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final byte[] NOTHING = {};

    /** How many frames there are. */
    final int count;
    /** The octets that all frames are in. */
    byte[] octets = NOTHING;
    /** Where each frame begins in them, and where it ends. */
    final int[] bounds;
    private long total;

    Frames(int count) {
        this.count = count;
        bounds = new int[2 * count];
    }

    /** Finds the octets of the frames; returns whether they are all known, and not too many. */
    final boolean take(ArrayData frames) {
        boolean objects = frames instanceof GenericArrayData;
        return !objects && find(frames) || total <= MOST_OCTETS && copy(frames);
    }

    /** Finds the frames where Spark has them; returns whether they are all known, and in one place. */
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

    /** Copies the frames into one place, where they are not; returns whether they are all known. */
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

    /** The number of a frame that is counted from the end where its number is negative; -1 where it is not there. */
    final int place(int frame) {
        int place = frame < 0 ? frame + count : frame;
        return place < count ? Math.max(place, -1) : -1;
    }

    /** The first octets of a frame as a number, at most seven, -1 where there are fewer. */
    public final long head(int frame, int size) {
        int place = place(frame);
        return place < 0 || size(place) < size ? -1 : number(octets, begin(place), size);
    }

    /** All octets of a frame as a number behind that of how many they are; -1 where there are more than seven. */
    public final long whole(int frame) {
        int place = place(frame);
        if (place < 0 || size(place) > 7) {
            return -1;
        }
        return (long) size(place) << 56 | number(octets, begin(place), size(place));
    }

    /** Whether the first octets of a frame are these. */
    public final boolean begins(int frame, int size, long wanted) {
        int place = place(frame);
        return place >= 0 && size(place) >= size && number(octets, begin(place), size) == wanted;
    }

    /** Whether a frame has these octets and no others. */
    public final boolean fills(int frame, int size, long wanted) {
        return begins(frame, size, wanted) && size(place(frame)) == size;
    }

    /** How many frames there are. */
    public final int frames() {
        return count;
    }

    /** A number of so many octets. */
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
