package specwire.generated.java;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Captured messages to rows, inside Spark's own process: {@code _message}, {@code _error}, {@code _frames}, and a
 * struct for each message of the protocol, null but for the row's own; behind them {@code _octets}, the number of
 * octets of all frames that are known.
 *
 * <p>The rows are those of the package's {@code columns.decode}, errors included. Nothing that a peer sent makes this
 * throw, and no memory is taken by a number that it wrote.
 */
public final class Decoder {
    /** The most frames of one message; octets are bounded by what a row of Spark can hold. */
    private static final int MAX_FRAMES = 65_536;

    private static final int COMMON = 3;

    /** How many columns stand behind those of the messages: the octets of all frames. */
    private static final int COUNTED = 1;

    /** Reads a message that is as the grammar has it; null where it is not, or the tables alone can tell. */
    public interface Quick {
        /** Returns the values of the message, whose number the cursor then has. */
        Object[] read(Cursor in);
    }

    private final Protocol protocol;
    private final Quick quick;
    private final int count;
    private final StructType type;

    public Decoder(Protocol protocol, Quick quick) {
        this.protocol = protocol;
        this.quick = quick;
        count = protocol.messages().size();
        type = Columns.decoded(protocol.messages());
    }

    /** The columns of a row. */
    public StructType type() {
        return type;
    }

    /** The protocol's name. */
    public String name() {
        return protocol.name();
    }

    /** Decodes a message without regard to who sent it. */
    public InternalRow decode(ArrayData frames) {
        return decode(frames, null);
    }

    /** Decodes a message that the role of that letter sent; null or empty where nobody knows. */
    public InternalRow decode(ArrayData frames, UTF8String sender) {
        Object[] columns = new Object[COMMON + count + COUNTED];
        if (frames != null && readQuickly(frames, columns)) {
            return new GenericInternalRow(columns);
        }
        Object[] octets = frames == null ? new Object[0] : octets(frames);
        columns[COMMON + count] = count(octets);
        try {
            read(octets, sender == null || sender.numBytes() == 0 ? null : sender.toString(), columns);
        } catch (Refusal refusal) {
            columns[1] = refusal.row();
            columns[2] = frames == null ? null : new GenericArrayData(octets);
        }
        return new GenericInternalRow(columns);
    }

    private boolean readQuickly(ArrayData frames, Object[] columns) {
        if (frames.numElements() > MAX_FRAMES) {
            return false;
        }
        Cursor in = new Cursor(frames);
        Object[] values = quick.read(in);
        if (values == null) {
            return false;
        }
        columns[0] = protocol.messages().get(in.message()).classNameUtf8();
        columns[COMMON + in.message()] = new GenericInternalRow(values);
        columns[COMMON + count] = in.total();
        return true;
    }

    private void read(Object[] frames, String sender, Object[] columns) {
        for (int number = 0; number < frames.length; number++) {
            if (frames[number] == null) {
                // It is not known, which is another thing than empty.
                throw Refusal.of(null, "", "frames", number, null, "frames", "octets", "null", "columns");
            }
        }
        if (frames.length > MAX_FRAMES) {
            String most = "at most " + Words.frames(MAX_FRAMES);
            throw Selection.refuse(protocol, null, -1, -1, "limit", most, Integer.toString(frames.length), null);
        }
        Message message = protocol.find(frames, sender);
        Object[] values;
        try {
            values = message.read(new Place(protocol, message, frames, false));
        } catch (Refusal first) {
            // Once more, with the paths of entries, for what the error says.
            values = message.read(new Place(protocol, message, frames, true));
        }
        columns[0] = message.classNameUtf8();
        columns[COMMON + message.number()] = new GenericInternalRow(values);
    }

    private static long count(Object[] frames) {
        long octets = 0;
        for (Object frame : frames) {
            octets += frame == null ? 0 : ((byte[]) frame).length;
        }
        return octets;
    }

    private static Object[] octets(ArrayData frames) {
        Object[] octets = new Object[frames.numElements()];
        for (int number = 0; number < octets.length; number++) {
            octets[number] = frames.isNullAt(number) ? null : frames.getBinary(number);
        }
        return octets;
    }
}
