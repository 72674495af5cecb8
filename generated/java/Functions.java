// Written by specwire from generator/support/java/Functions.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The decoders of all protocols as a catalog of functions.
 *
 * <p>{@code from_flux(value)} takes a BINARY or ARRAY&lt;BINARY&gt; value, followed by the sender if the protocol takes
 * one. Set {@code spark.sql.catalog.specwire} to this class to use them in a session.
 */
public final class Functions implements FunctionCatalog {
    private static final String PREFIX = "from_";

    private String catalog = "";

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {
        catalog = name;
    }

    @Override
    public String name() {
        return catalog;
    }

    @Override
    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
        String name = identifier.name();
        if (identifier.namespace().length > 0 || !name.startsWith(PREFIX)) {
            throw new NoSuchFunctionException(identifier);
        }
        String protocol = name.substring(PREFIX.length());
        // A reserved word has an underscore in package names.
        for (String part : new String[] {protocol, protocol + "_"}) {
            try {
                // A package of the user's is in a jar of its own, which only the session's loader has.
                ClassLoader loader = Thread.currentThread().getContextClassLoader();
                Class<?> found = Class.forName("specwire.generated." + part + ".Decode", true, loader);
                return new Found(name, (Function) found.getConstructor().newInstance());
            } catch (ClassNotFoundException missing) {
                continue;
            } catch (ReflectiveOperationException fault) {
                throw new IllegalStateException(fault);
            }
        }
        throw new NoSuchFunctionException(identifier);
    }

    private record Found(String name, Function function) implements UnboundFunction {
        @Override
        public String description() {
            return name + ": the frames of a message to the columns of its protocol";
        }

        @Override
        public BoundFunction bind(StructType given) {
            return function.bind(name, given);
        }
    }
}
