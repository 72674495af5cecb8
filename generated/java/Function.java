// Written by specwire from generator/support/java/Function.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * A protocol's decoder as a function of Spark; the generated class adds the static method {@code invoke}, which Spark
 * finds by its name and calls with values as it has them itself, so nothing is converted on the way in or out.
 */
public abstract class Function implements ScalarFunction<InternalRow> {
    private static final long serialVersionUID = 1L;

    /** What decodes; there is one for each class. */
    protected abstract Decoder decoder();

    /** Whether the sender is the second argument: it may decide which message frames are. */
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

    /** Said to be false although it is true: Spark would decode again for each filter that it moves below. */
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
