package specwire.generated.java;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * A protocol's decoder as a Spark function. The generated class adds the static method {@code invoke}, which Spark
 * finds by name and calls with its internal values, so arguments and results are not converted.
 */
public abstract class Function implements ScalarFunction<InternalRow> {
    private static final long serialVersionUID = 1L;

    /** The decoder; one for each class. */
    protected abstract Decoder decoder();

    /** Whether the sender is the second argument, because it can determine the message. */
    protected boolean takesSender() {
        return false;
    }

    @Override
    public DataType[] inputTypes() {
        DataType frames = ArrayType.apply(DataTypes.BinaryType);
        return takesSender() ? new DataType[] {frames, DataTypes.StringType} : new DataType[] {frames};
    }

    @Override
    public DataType resultType() {
        return decoder().type();
    }

    @Override
    public boolean isResultNullable() {
        return false;
    }

    /** Returns false although decoding is deterministic: otherwise Spark decodes again for each pushed-down filter. */
    @Override
    public boolean isDeterministic() {
        return false;
    }

    @Override
    public String name() {
        return "decode_" + decoder().name();
    }

    @Override
    public String canonicalName() {
        return "specwire." + name();
    }
}
