package specwire.generated.java;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A protocol's decoder as a Spark function. The generated class adds the static methods {@code invoke}, which Spark
 * finds by name and argument types and calls with its internal values, so arguments and results are not converted.
 */
public abstract class Function implements ScalarFunction<InternalRow> {
    private static final long serialVersionUID = 1L;

    private String name = "";
    private DataType[] inputs = {};

    /** The decoder; one for each class. */
    protected abstract Decoder decoder();

    /** Whether a sender may follow the frames, because it can determine the message. */
    protected boolean takesSender() {
        return false;
    }

    /** Sets the argument types: one BINARY frame or a list of frames, then the sender if it is given. */
    final Function bind(String called, StructType given) {
        int most = takesSender() ? 2 : 1;
        if (given.length() < 1 || given.length() > most) {
            String wanted = most == 1 ? "one argument" : "one or two arguments";
            throw new UnsupportedOperationException(called + " takes " + wanted);
        }
        name = called;
        inputs = new DataType[given.length()];
        for (int place = 1; place < inputs.length; place++) {
            inputs[place] = DataTypes.StringType;
        }
        boolean single = given.fields()[0].dataType() instanceof BinaryType;
        inputs[0] = single ? DataTypes.BinaryType : ArrayType.apply(DataTypes.BinaryType);
        return this;
    }

    @Override
    public DataType[] inputTypes() {
        return inputs.clone();
    }

    @Override
    public DataType resultType() {
        return decoder().type();
    }

    /** Returns false although decoding is deterministic: otherwise Spark decodes again for each pushed-down filter. */
    @Override
    public boolean isDeterministic() {
        return false;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public String canonicalName() {
        return "specwire." + name;
    }
}
