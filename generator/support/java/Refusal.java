package specwire.generated.java;

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** Fault of frames that are no message: thrown only inside a decoder, without a stack trace. */
final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The column {@code _error}. */
    private final transient InternalRow row;

    private Refusal(InternalRow row) {
        super(null, null, false, false);
        this.row = row;
    }

    InternalRow row() {
        return row;
    }

    /**
     * A fault; {@code message}, {@code field}, {@code frame} and {@code offset} are null if not known.
     *
     * @param named the message, or the protocol if no message is identified; begins the error text
     * @param rule the specification's edition and rule
     */
    static Refusal of(
            String message, String named, String field, Integer frame, Long offset, String kind,
            String expected, String found, String rule) {
        StringBuilder text = new StringBuilder(named);
        if (field != null) {
            text.append(named.isEmpty() ? "" : ".").append(field);
        }
        if (offset != null) {
            text.append(" at octet ").append(offset);
        }
        if (frame != null && frame != 0) {
            text.append(" in frame ").append(frame);
        }
        boolean encoding = kind.equals("text") && expected.equals("UTF-8");
        text.append(": ").append(encoding ? found + " is not UTF-8" : "expected " + expected + ", found " + found);
        text.append(" [").append(rule).append(']');
        return new Refusal(new GenericInternalRow(new Object[] {
            text(message), text(field), frame, offset, text(kind), text(text.toString()),
        }));
    }

    private static UTF8String text(String text) {
        return UTF8String.fromString(text);
    }
}
