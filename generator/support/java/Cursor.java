package specwire.generated.java;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.BinaryView;

/**
 * Position in the frames of a message, and the row that is written.
 *
 * <p>A message with a fault is read twice. The first time, nothing keeps the path of the field that is read. The
 * second time, {@link #names} is true and operations keep it for the error.
 */
final class Cursor {
    /** Number of an operation that has none: no column, register or recursive value. */
    static final int NONE = -2;

    final RowWriter row = new RowWriter();
    /** Number of frames. */
    final int count;
    /** Arrays that contain the frames, which are null for null frames; and where each begins and ends there. */
    private final byte[][] arrays;
    private final int[] bounds;
    private long total;

    private String edition = "";
    private Message message;
    /** Hidden numbers that were read, each followed by its position; also marks. */
    private long[] numbers = {};
    /** The values that can contain themselves and have been begun, by their numbers. */
    private Enclosing[] enclosing = {};
    private int maxDepth;
    private int depth;

    /** Whether the path is kept. */
    boolean names;
    /** The path before the name of a field: empty in a frame. */
    String prefix = "";
    /** The path of the field as in errors: {@code headers[1]}. */
    String path = "";
    /** The rule of the field, or of an entry in it; null for the rule of the message. */
    String rule;
    /** In a text with name and value: position of the octet between them; -1 otherwise. */
    int divided = -1;

    /** Index of the frame. */
    int index;
    /** The array that contains the frame, and where the frame begins there. */
    byte[] octets;
    private int begin;
    /** Position of the next value, and where the innermost body begins and ends. */
    int at;
    int start;
    int end;
    /** Position of the number that counts the value, set by {@link Count} and {@link Extent}. */
    int counted;
    /** Whether a size in the innermost frame or record says where that ends. */
    boolean sized;

    Cursor(ArrayData frames) {
        count = frames.numElements();
        arrays = new byte[count][];
        bounds = new int[2 * count];
        boolean objects = frames instanceof GenericArrayData;
        for (int number = 0; number < count; number++) {
            BinaryView view = objects ? null : frames.getBinaryView(number);
            if (view != null && view.getBaseObject() instanceof byte[] array) {
                int from = (int) (view.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
                take(number, array, from, from + view.numBytes());
            } else if (!frames.isNullAt(number)) {
                byte[] frame = frames.getBinary(number);
                take(number, frame, 0, frame.length);
            }
        }
    }

    private void take(int number, byte[] array, int from, int to) {
        arrays[number] = array;
        bounds[2 * number] = from;
        bounds[2 * number + 1] = to;
        total += to - from;
    }

    /** The octets of all frames that are not null. */
    long total() {
        return total;
    }

    /** Index of the first null frame, -1 if there is none. */
    int firstNull() {
        for (int number = 0; number < count; number++) {
            if (arrays[number] == null) {
                return number;
            }
        }
        return -1;
    }

    /** Index of a frame, counted from the end if negative; -1 if it is missing. */
    int place(int frame) {
        int place = frame < 0 ? frame + count : frame;
        return place < count ? Math.max(place, -1) : -1;
    }

    byte[] array(int frame) {
        return arrays[frame];
    }

    int begin(int frame) {
        return bounds[2 * frame];
    }

    int size(int frame) {
        return bounds[2 * frame + 1] - bounds[2 * frame];
    }

    /** A copy of the octets of a frame. */
    byte[] frame(int frame) {
        return Arrays.copyOfRange(arrays[frame], bounds[2 * frame], bounds[2 * frame + 1]);
    }

    /** Moves to the start of the message; {@code registers} is the number of its hidden numbers. */
    void begin(Protocol protocol, Message read, int registers, boolean named) {
        edition = protocol.edition();
        maxDepth = protocol.maxDepth();
        depth = 0;
        message = read;
        names = named;
        prefix = "";
        index = 0;
        numbers = registers == 0 ? numbers : new long[2 * registers];
    }

    /** Moves to the start of the frame. */
    void open() {
        octets = arrays[index];
        begin = bounds[2 * index];
        at = begin;
        start = begin;
        end = bounds[2 * index + 1];
    }

    /** Names the field that is read next. */
    void enter(Field field) {
        path = prefix.isEmpty() ? field.name() : prefix + field.name();
        rule = field.rule();
        divided = -1;
    }

    /** Leaves all fields. */
    void leave() {
        path = "";
        rule = null;
        divided = -1;
    }

    int left() {
        return end - at;
    }

    /** Refuses a body with too few octets left. */
    void need(int size) {
        if (size > end - at) {
            throw refuse("length", Words.octets(size), Integer.toString(end - at), at);
        }
    }

    /** Reads an unsigned big-endian integer of 1 to 8 octets. */
    long unsigned(int size) {
        need(size);
        long value = Bytes.number(octets, at, size);
        at += size;
        return value;
    }

    /** Whether the next octets of the body are these. */
    boolean begins(byte[] wanted) {
        return begins(wanted, false);
    }

    /** The same; with {@code folded}, letters are read in either case. */
    boolean begins(byte[] wanted, boolean folded) {
        return wanted.length <= end - at && Bytes.standAt(octets, at, wanted, folded);
    }

    /** Keeps a hidden number and its position. */
    void keep(int register, long value, int position) {
        numbers[2 * register] = value;
        numbers[2 * register + 1] = position;
    }

    long number(int register) {
        return numbers[2 * register];
    }

    int position(int register) {
        return (int) numbers[2 * register + 1];
    }

    /** Enters a record; refuses too many that contain each other. */
    void descend() {
        if (maxDepth > 0 && depth == maxDepth) {
            throw refuse("limit", "at most " + maxDepth + " values inside each other", "more", at);
        }
        depth++;
    }

    /** Leaves a record. */
    void ascend() {
        depth--;
    }

    /** Remembers a value that can contain itself. */
    void enclose(int number, Enclosing value) {
        if (number >= enclosing.length) {
            enclosing = Arrays.copyOf(enclosing, number + 1);
        }
        enclosing[number] = value;
    }

    /** Reads a value like the one around it that has this number, without its columns. */
    void readAgain(int number) {
        long[] outer = numbers;
        numbers = outer.clone();
        long mark = row.mark();
        enclosing[number].read(this, RowWriter.ITEM);
        row.reset(mark);
        numbers = outer;
    }

    /** Refuses octets after the last value of a frame. */
    void endFrame() {
        if (at < end) {
            throw refuse("trailing", "the end of the frame", Words.numberOf(end - at, "more octet"), at);
        }
    }

    /** The fault at a position in the frame; -1 if no octet is at fault. */
    Refusal refuse(String kind, String expected, String found, int position) {
        String named = path;
        if (divided >= 0 && position >= 0) {
            named += position < divided ? ".name" : ".value";
        }
        Integer where = count == 0 ? null : Integer.valueOf(Math.min(index, count));
        return Refusal.of(
                message.name(), message.name(), named.isEmpty() ? null : named, where,
                position < 0 ? null : Long.valueOf(position - begin), kind, expected, found,
                edition + " " + ruleName());
    }

    /** The rule of the field, or of the message. */
    String ruleName() {
        return rule == null ? message.name() : rule;
    }

    /** The fault that none of these octets begin here. */
    Refusal refuseTag(List<byte[]> tags, String kind, boolean folded) {
        int most = tags.stream().mapToInt(tag -> tag.length).max().orElse(0);
        byte[] found = Arrays.copyOfRange(octets, at, Math.min(end, at + most));
        boolean cut = tags.stream().anyMatch(tag -> Bytes.begins(tag, found, folded));
        return refuse(cut ? "length" : kind, Words.oneOf(tags), Words.show(found), at);
    }
}
