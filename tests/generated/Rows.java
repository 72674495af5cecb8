import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.execution.vectorized.OffHeapColumnVector;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.jdk.javaapi.CollectionConverters;
import specwire.generated.java.Functions;

/**
 * Decodes messages outside of Spark: a line "package sender frame,frame" in, a row as JSON out.
 *
 * <p>Frames are in hexadecimal, "?" is a null one; "-" in the place of all is a message without frames, "~" null
 * frames, whose row is null: {}. A sender "-" is not known. The first line out for each package is its type.
 */
public final class Rows {
    private static final UnsafeProjection PACK =
            UnsafeProjection.create(new DataType[] {ArrayType.apply(DataTypes.BinaryType)});

    private static final StructType FRAMES = new StructType().add("frames", "array<binary>");
    private static final StructType SENT = FRAMES.add("sender", "string");

    private Rows() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        String known = "";
        Method invoke = null;
        Function1<Object, Object> convert = null;
        Layouts layouts = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            if (!words[0].equals(known)) {
                known = words[0];
                Class<?> decode = Class.forName("specwire.generated." + known + ".Decode");
                boolean sender = Stream.of(decode.getMethods()).anyMatch(
                        method -> method.getName().equals("invoke") && method.getParameterCount() > 1);
                Identifier name = Identifier.of(new String[0], "from_" + known);
                BoundFunction function = new Functions().loadFunction(name).bind(sender ? SENT : FRAMES);
                DataType type = function.resultType();
                convert = CatalystTypeConverters.createToScalaConverter(type);
                layouts = new Layouts((StructType) type);
                invoke = sender
                        ? decode.getMethod("invoke", ArrayData.class, UTF8String.class)
                        : decode.getMethod("invoke", ArrayData.class);
                out.println(type.simpleString());
            }
            ArrayData frames = frames(words[2]);
            UTF8String sender = words[1].equals("-") ? null : UTF8String.fromString(words[1]);
            InternalRow called = called(invoke, frames, sender);
            String row = called == null ? "{}" : json(convert, called);
            if (frames != null) {
                InternalRow packed = called(invoke, packed(frames), sender);
                require(row, json(convert, packed), "the row of Spark's own octets");
                require(row, json(convert, packed.copy()), "the copy of the row");
                layouts.check(packed, row);
                try (OffHeapColumnVector column = column(frames)) {
                    ArrayData outside = new ColumnarArray(column, 0, frames.numElements());
                    require(row, json(convert, called(invoke, outside, sender)), "the row of octets outside of the heap");
                }
            }
            out.println(row);
        }
        out.flush();
    }

    private static void require(String row, String other, String what) {
        if (!row.equals(other)) {
            throw new IllegalStateException("the row of Java's objects: " + row + "; " + what + ": " + other);
        }
    }

    private static String json(Function1<Object, Object> convert, InternalRow row) {
        return ((Row) convert.apply(row)).json();
    }

    private static InternalRow called(Method invoke, ArrayData frames, UTF8String sender)
            throws ReflectiveOperationException {
        Object row = invoke.getParameterCount() > 1 ? invoke.invoke(null, frames, sender) : invoke.invoke(null, frames);
        return (InternalRow) row;
    }

    /**
     * What Spark's own writer makes of the values of messages: rows that come as octets must be the same ones, because
     * Spark groups by octets.
     */
    private static final class Layouts {
        private final StructType type;
        private final Map<Integer, Function1<Object, Object>> out = new HashMap<>();
        private final Map<Integer, Function1<Object, Object>> in = new HashMap<>();
        private final Map<Integer, UnsafeProjection> writers = new HashMap<>();

        Layouts(StructType type) {
            this.type = type;
        }

        void check(InternalRow row, String text) {
            for (int column = 0; column < type.length(); column++) {
                boolean struct = !row.isNullAt(column) && type.apply(column).dataType() instanceof StructType;
                if (struct && row.getStruct(column, 0) instanceof UnsafeRow own && !own.equals(written(column, own))) {
                    throw new IllegalStateException("Spark has other octets for " + text);
                }
            }
        }

        private UnsafeRow written(int column, UnsafeRow own) {
            StructType values = (StructType) type.apply(column).dataType();
            Object plain = out.computeIfAbsent(
                    column, any -> CatalystTypeConverters.createToScalaConverter(values)).apply(own);
            Object again = in.computeIfAbsent(
                    column, any -> CatalystTypeConverters.createToCatalystConverter(values)).apply(plain);
            return writers.computeIfAbsent(column, any -> writer(values)).apply((InternalRow) again);
        }

        private static UnsafeProjection writer(StructType values) {
            List<Expression> columns = new ArrayList<>();
            for (int column = 0; column < values.length(); column++) {
                columns.add(new BoundReference(column, values.apply(column).dataType(), true));
            }
            return InterpretedUnsafeProjection.createProjection(CollectionConverters.asScala(columns).toSeq());
        }
    }

    /** The same frames as octets in a row, as Spark's shuffles and caches have them, where they are read in place. */
    private static ArrayData packed(ArrayData frames) {
        return PACK.apply(new GenericInternalRow(new Object[] {frames})).getArray(0);
    }

    /** The same frames as a column of a batch of rows. */
    private static OffHeapColumnVector column(ArrayData frames) {
        OffHeapColumnVector column = new OffHeapColumnVector(frames.numElements(), DataTypes.BinaryType);
        for (int number = 0; number < frames.numElements(); number++) {
            if (frames.isNullAt(number)) {
                column.putNull(number);
            } else {
                byte[] octets = frames.getBinary(number);
                column.putByteArray(number, octets, 0, octets.length);
            }
        }
        return column;
    }

    private static ArrayData frames(String word) {
        if (word.equals("~")) {
            return null;
        }
        List<Object> frames = new ArrayList<>();
        for (String frame : word.equals("-") ? new String[0] : word.split(",", -1)) {
            frames.add(frame.equals("?") ? null : HexFormat.of().parseHex(frame));
        }
        return new GenericArrayData(frames.toArray());
    }
}
