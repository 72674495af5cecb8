package specwire.generated.java;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The row of a captured message: its values, or its error.
 *
 * <p>Most columns of a row are null, as they belong to other messages. So there is no array of columns; Spark's
 * compiled code requests each by number.
 */
final class Decoded extends GenericInternalRow {
    /** Columns before those of the messages. */
    static final int COMMON = 3;

    /** Columns after those of the messages: the octets of all frames. */
    static final int COUNTED = 1;

    private static final long serialVersionUID = 1L;
    private static final int NAME = 0;
    private static final int ERROR = 1;
    private static final int FRAMES = 2;

    private final int last;
    /** Column of the message, -1 if there is none. */
    private final int own;
    private final UTF8String name;
    /** Columns of the message, or the error. */
    private final InternalRow struct;
    /** Frames of a row that is no message. */
    private final ArrayData frames;
    private final long octets;

    private Decoded(int messages, int own, UTF8String name, InternalRow struct, ArrayData frames, long octets) {
        last = COMMON + messages;
        this.own = own;
        this.name = name;
        this.struct = struct;
        this.frames = frames;
        this.octets = octets;
    }

    /** The row of a message with the values of its columns. */
    static Decoded of(int messages, Message message, InternalRow values, long octets) {
        return new Decoded(messages, COMMON + message.number(), message.classNameUtf8(), values, null, octets);
    }

    /** The row of frames that are no message. */
    static Decoded of(int messages, Refusal refusal, ArrayData frames, long octets) {
        return new Decoded(messages, -1, null, refusal.row(), frames, octets);
    }

    @Override
    public int numFields() {
        return last + COUNTED;
    }

    @Override
    public boolean isNullAt(int column) {
        return switch (column) {
            case NAME -> name == null;
            case ERROR -> name != null;
            case FRAMES -> frames == null;
            default -> column != own && column != last;
        };
    }

    @Override
    public UTF8String getUTF8String(int column) {
        return column == NAME ? name : null;
    }

    @Override
    public InternalRow getStruct(int column, int fields) {
        return isNullAt(column) ? null : struct;
    }

    @Override
    public ArrayData getArray(int column) {
        return column == FRAMES ? frames : null;
    }

    @Override
    public long getLong(int column) {
        return octets;
    }

    @Override
    public Object genericGet(int column) {
        if (isNullAt(column)) {
            return null;
        }
        return column == NAME ? name : column == FRAMES ? frames : column == last ? (Object) octets : struct;
    }

    @Override
    public Object[] values() {
        Object[] values = new Object[numFields()];
        for (int column = 0; column < values.length; column++) {
            values[column] = genericGet(column);
        }
        return values;
    }

    @Override
    public void setNullAt(int column) {
        throw new UnsupportedOperationException("a decoded row stays as it is");
    }

    @Override
    public void update(int column, Object value) {
        throw new UnsupportedOperationException("a decoded row stays as it is");
    }
}
