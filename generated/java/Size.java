// Written by specwire from generator/support/java/Size.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** Number of octets that follow in the run; each form is a tag and the width of the integer after it. */
public final class Size extends Type {
    /** A way to write a size. */
    public static final class Form {
        private final byte[] tag;
        private final int octets;

        /** The tag in hexadecimal; empty for a form that applies if no tag matches. */
        public Form(String tag, int octets) {
            this.tag = Hex.octets(tag);
            this.octets = octets;
        }
    }

    private final List<Form> forms;
    private final List<Form> tagged;
    private final List<byte[]> tags;
    private final Form other;

    public Size(Form... forms) {
        this.forms = List.of(forms);
        tags = Stream.of(forms).map(form -> form.tag).toList();
        tagged = Stream.of(forms).filter(form -> form.tag.length > 0).toList();
        other = Stream.of(forms).filter(form -> form.tag.length == 0).findFirst().orElse(null);
    }

    @Override
    boolean implied() {
        return true;
    }

    @Override
    Object read(Place place) {
        throw new IllegalStateException("a size belongs to a run");
    }

    /** Reads a size up to 2^64 - 1, advances past it, and records where its integer begins. */
    long readSize(Place place) {
        for (Form form : tagged) {
            if (place.begins(form.tag)) {
                place.at += form.tag.length;
                return integer(place, form);
            }
        }
        if (other == null) {
            throw Tags.refuse(place, tags, "constant");
        }
        return integer(place, other);
    }

    private static long integer(Place place, Form form) {
        place.begin = place.at;
        return place.unsigned(form.octets);
    }

    /** Width of a size at this place of a hexadecimal pattern; -1 if it matches no form. */
    int sizeIn(String pattern) {
        for (Form form : forms) {
            if (pattern.startsWith(Words.hex(form.tag, 0, form.tag.length))) {
                return form.tag.length + form.octets;
            }
        }
        return -1;
    }

    @Override
    DataType dataType() {
        return DataTypes.NullType;
    }
}
