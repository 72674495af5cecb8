// Written by specwire from generator/support/java/Decoder.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decoder from the frames of messages to rows, inside Spark's process. The columns are {@code _message},
 * {@code _error}, {@code _frames}, a struct for each message of the protocol (null except for the row's message), and
 * {@code _octets}: the number of octets of all non-null frames. Null frames give a null row.
 *
 * <p>The rows equal those of the package's {@code columns.decode}, errors included. No input from a peer makes the
 * decoder throw, and no memory is allocated by a number that a peer sent.
 */
public final class Decoder {
    /** Largest number of frames of one message; a Spark row bounds the octets. */
    private static final int MAX_FRAMES = 65_536;

    private final Protocol protocol;
    private final Message[] messages;
    private final StructType type;

    public Decoder(Protocol protocol) {
        this.protocol = protocol;
        messages = protocol.messages().toArray(new Message[0]);
        type = Columns.decoded(protocol.messages());
    }

    /** The columns of a row. */
    public StructType type() {
        return type;
    }

    /** The frames of a message of one frame. */
    public static ArrayData single(byte[] frame) {
        return frame == null ? null : new GenericArrayData(new Object[] {frame});
    }

    /** The cursor for fast reading; null if frames are null or too many. */
    public Cursor cursor(ArrayData frames) {
        return frames == null ? null : Cursor.over(frames);
    }

    /** The row of the message that the cursor has read. */
    public InternalRow row(Cursor read) {
        return Decoded.of(messages.length, messages[read.message()], read.row(), read.total());
    }

    /** Decodes frames with the tables; {@code sender} is a role's letter, null or empty if unknown. */
    public InternalRow decode(ArrayData frames, UTF8String sender) {
        if (frames == null) {
            return null;
        }
        Object[] found = octets(frames);
        long total = count(found);
        try {
            return read(found, sender == null || sender.numBytes() == 0 ? null : sender.toString(), total);
        } catch (Refusal refusal) {
            return Decoded.of(messages.length, refusal, new GenericArrayData(found), total);
        }
    }

    private InternalRow read(Object[] frames, String sender, long total) {
        for (int number = 0; number < frames.length; number++) {
            if (frames[number] == null) {
                // A null frame is unknown, which differs from empty.
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
            // Decode again with paths of entries for the error text.
            values = message.read(new Place(protocol, message, frames, true));
        }
        return Decoded.of(messages.length, message, new GenericInternalRow(values), total);
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
