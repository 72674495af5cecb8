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
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;

/**
 * Decodes messages outside of Spark: a line "package sender frame,frame" in, a row as JSON out.
 *
 * <p>Frames are in hexadecimal, "?" is a null one; "-" in the place of all is a message without frames, "~" a null
 * message. A sender "-" is not known. The first line out for each package is its type.
 */
public final class Rows {
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
            Object row = invoke.getParameterCount() > 1 ? invoke.invoke(null, frames, sender) : invoke.invoke(null, frames);
            out.println(((Row) convert.apply((InternalRow) row)).json());
        }
        out.flush();
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
