// Written by specwire from generator/support/java/Struct.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;

/** A record: a run of fields inside another. */
public final class Struct extends Type {
    private final Fields fields;
    private final String rule;

    /** Fields of a record; {@code rule} is its grammar rule, null if it has none. */
    public Struct(String rule, Field... fields) {
        this.rule = rule;
        this.fields = new Fields(fields);
    }

    @Override
    Object read(Place place) {
        return new GenericInternalRow(fields.readRecord(place, rule));
    }

    @Override
    DataType dataType() {
        return Columns.struct(fields.all());
    }
}
