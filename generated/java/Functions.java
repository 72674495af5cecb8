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
 * The decoders of all protocols as a catalog of functions: {@code decode_flux(frames)} and so on.
 *
 * <p>Set {@code spark.sql.catalog.specwire} to this class to use it in a session.
 */
public final class Functions implements FunctionCatalog {
    private static final String PREFIX = "decode_";

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
                return new Found((Function) found.getConstructor().newInstance());
            } catch (ClassNotFoundException missing) {
                continue;
            } catch (ReflectiveOperationException fault) {
                throw new IllegalStateException(fault);
            }
        }
        throw new NoSuchFunctionException(identifier);
    }

    private record Found(Function function) implements UnboundFunction {
        @Override
        public String name() {
            return function.name();
        }

        @Override
        public String description() {
            return name() + ": the frames of a captured message to the columns of its protocol";
        }

        @Override
        public BoundFunction bind(StructType given) {
            int wanted = function.inputTypes().length;
            if (given.length() != wanted) {
                throw new UnsupportedOperationException(name() + " takes " + wanted + " arguments");
            }
            return function;
        }
    }
}
