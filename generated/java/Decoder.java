// Written by specwire from generator/support/java/Decoder.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import scala.collection.Seq;

/**
 * Captured messages to rows, inside Spark's own process: {@code _message}, {@code _error}, {@code _frames}, and a
 * struct for each message of the protocol, null but for the row's own.
 *
 * <p>The rows are those of the package's {@code columns.decode}, errors included. Nothing that a peer sent makes this
 * throw, and no memory is taken by a number that it wrote.
 */
public final class Decoder {
    /** The most frames of one message; octets are bounded by what a row of Spark can hold. */
    private static final int MAX_FRAMES = 65_536;

    private static final int COMMON = 3;

    private final Protocol protocol;
    private final int count;

    public Decoder(Protocol protocol) {
        this.protocol = protocol;
        count = protocol.messages().size();
    }

    /** Decodes a message without regard to who sent it. */
    public Row decode(Seq<byte[]> frames) {
        return decode(frames, null);
    }

    /** Decodes a message that the role of that letter sent; null or empty where nobody knows. */
    public Row decode(Seq<byte[]> frames, String sender) {
        Object[] columns = new Object[COMMON + count];
        try {
            read(frames == null ? new Object[0] : octets(frames), known(sender), columns);
        } catch (Refusal refusal) {
            columns[1] = refusal.row();
            columns[2] = frames;
        }
        return RowFactory.create(columns);
    }

    private static String known(String sender) {
        return sender == null || sender.isEmpty() ? null : sender;
    }

    private void read(Object[] frames, String sender, Object[] columns) {
        if (frames.length > MAX_FRAMES) {
            String most = "at most " + Words.frames(MAX_FRAMES);
            throw Selection.refuse(
                    protocol, null, -1, -1, "limit", most, Integer.toString(frames.length), null);
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
        columns[COMMON + message.number()] = RowFactory.create(values);
    }

    /** The frames as Java has them; a null among them is not known, which is another thing than empty. */
    private static Object[] octets(Seq<byte[]> frames) {
        Object[] octets = new Object[frames.length()];
        for (int number = 0; number < octets.length; number++) {
            byte[] frame = frames.apply(number);
            if (frame == null) {
                throw Refusal.of(null, "", "frames", number, null, "frames", "octets", "null", "columns");
            }
            octets[number] = frame;
        }
        return octets;
    }
}
