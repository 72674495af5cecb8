import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;

/**
 * Decodes messages outside of Spark: a line "package sender frame,frame" in, a row as JSON out.
 *
 * <p>Frames are in hexadecimal, "?" is a null one; "-" in the place of all is a message without frames, "~" a null
 * message. A sender "-" is not known. The first line out for each package is its type.
 */
public final class Rows {
    private static final UnsafeProjection PACK =
            UnsafeProjection.create(new DataType[] {ArrayType.apply(DataTypes.BinaryType)});

    private Rows() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        String known = "";
        Method invoke = null;
        Function1<Object, Object> convert = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            if (!words[0].equals(known)) {
                known = words[0];
                Class<?> decode = Class.forName("specwire.generated." + known + ".Decode");
                Object function = decode.getConstructor().newInstance();
                DataType type = ((ScalarFunction<?>) function).resultType();
                convert = CatalystTypeConverters.createToScalaConverter(type);
                boolean sender = ((ScalarFunction<?>) function).inputTypes().length > 1;
                invoke = sender
                        ? decode.getMethod("invoke", ArrayData.class, UTF8String.class)
                        : decode.getMethod("invoke", ArrayData.class);
                out.println(type.simpleString());
            }
            ArrayData frames = frames(words[2]);
            UTF8String sender = words[1].equals("-") ? null : UTF8String.fromString(words[1]);
            String row = json(invoke, convert, frames, sender);
            ArrayData packed = frames == null ? null : packed(frames);
            String other = json(invoke, convert, packed, sender);
            if (!row.equals(other)) {
                throw new IllegalStateException("of Java's objects: " + row + "; of Spark's own octets: " + other);
            }
            out.println(row);
        }
        out.flush();
    }

    private static String json(Method invoke, Function1<Object, Object> convert, ArrayData frames, UTF8String sender)
            throws ReflectiveOperationException {
        Object row = invoke.getParameterCount() > 1 ? invoke.invoke(null, frames, sender) : invoke.invoke(null, frames);
        return ((Row) convert.apply((InternalRow) row)).json();
    }

    /** The same frames as octets in a row, as Spark's shuffles and caches have them, where they are read in place. */
    private static ArrayData packed(ArrayData frames) {
        return PACK.apply(new GenericInternalRow(new Object[] {frames})).getArray(0);
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
