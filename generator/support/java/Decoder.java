package specwire.generated.java;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
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

    private static final StructType COMMON = StructType.fromDDL("_message STRING, "
            + "_error STRUCT<message: STRING, field: STRING, frame: INT, offset: BIGINT, kind: STRING, text: STRING>, "
            + "_frames ARRAY<BINARY>");

    private final Protocol protocol;

    public Decoder(Protocol protocol) {
        this.protocol = protocol;
    }

    /** The columns of a row. */
    public StructType type() {
        List<StructField> found = new ArrayList<>(List.of(COMMON.fields()));
        for (Message message : protocol.messages()) {
            found.add(new StructField(message.className(), message.type(), true, Metadata.empty()));
        }
        return new StructType(found.toArray(new StructField[0])).add("_octets", DataTypes.LongType);
    }

    /** The frames of a message of one frame. */
    public static ArrayData single(byte[] frame) {
        return frame == null ? null : new GenericArrayData(new Object[] {frame});
    }

    /** Decodes frames; {@code sender} is a role's letter, null or empty if unknown. */
    public InternalRow decode(ArrayData frames, UTF8String sender) {
        if (frames == null) {
            return null;
        }
        int messages = protocol.messages().length;
        Cursor in = new Cursor(frames);
        try {
            Message message = find(in, sender == null || sender.numBytes() == 0 ? null : sender.toString());
            read(message, in);
            return Decoded.of(messages, message, in.row.end(message.columns()), in.total());
        } catch (Refusal refusal) {
            return Decoded.of(messages, refusal, copy(frames), in.total());
        }
    }

    private Message find(Cursor in, String sender) {
        int missing = in.firstNull();
        if (missing >= 0) {
            // A null frame is unknown, which differs from empty.
            throw Refusal.of(null, "", "frames", missing, null, "frames", "octets", "null", "columns");
        }
        if (in.count > MAX_FRAMES) {
            String most = "at most " + Words.frames(MAX_FRAMES);
            throw Selection.refuse(protocol, null, -1, -1, "limit", most, Integer.toString(in.count));
        }
        return protocol.find(in, sender);
    }

    private void read(Message message, Cursor in) {
        try {
            message.read(in, protocol, false);
        } catch (Refusal first) {
            // Decode again with the paths of fields for the error text.
            message.read(in, protocol, true);
        }
    }

    private static ArrayData copy(ArrayData frames) {
        Object[] octets = new Object[frames.numElements()];
        for (int number = 0; number < octets.length; number++) {
            octets[number] = frames.isNullAt(number) ? null : frames.getBinary(number);
        }
        return new GenericArrayData(octets);
    }
}
