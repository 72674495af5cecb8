package specwire.generated.java;

import java.util.List;

/** The number of all octets that follow in the body, then these. */
public final class Sized extends Operation {
    /** A way to write the number: a tag, then an integer. */
    public static final class Form {
        private final byte[] tag;
        private final int octets;

        /** The tag in hexadecimal; empty for a form that applies if no tag matches. */
        public Form(String tag, int octets) {
            this.tag = Bytes.parse(tag);
            this.octets = octets;
        }
    }

    /** What the number must be: exactly what is left, at most that, or both. */
    public enum Check { EXACT, AT_MOST, BOTH }

    private final Check check;
    private final List<Form> forms;
    private final List<Form> tagged;
    private final List<byte[]> tags;
    private final Form other;
    private final Body body;

    public Sized(Field field, Check check, List<Form> forms, Operation... body) {
        super(field);
        this.check = check;
        this.forms = forms;
        tags = forms.stream().map(form -> form.tag).toList();
        tagged = forms.stream().filter(form -> form.tag.length > 0).toList();
        other = forms.stream().filter(form -> form.tag.length == 0).findFirst().orElse(null);
        this.body = new Body(body);
    }

    @Override
    Body body() {
        return body;
    }

    @Override
    void read(Cursor in) {
        enter(in);
        Form form = form(in);
        in.at += form.tag.length;
        int start = in.at;
        long size = in.unsigned(form.octets);
        int left = in.left();
        if (size != left) {
            if (check != Check.EXACT && Long.compareUnsigned(size, left) > 0) {
                throw differs(in, "at most " + left + ", the number of octets left", size, start);
            }
            if (check != Check.AT_MOST) {
                throw differs(in, left + ", the number of octets behind it", size, start);
            }
        }
        in.sized = true;
        in.start = in.at;
        in.end = in.at + (int) size;
        body.read(in);
    }

    private Form form(Cursor in) {
        for (Form form : tagged) {
            if (in.begins(form.tag)) {
                return form;
            }
        }
        if (other == null) {
            throw in.refuseTag(tags, "constant", false);
        }
        return other;
    }

    private static Refusal differs(Cursor in, String expected, long size, int start) {
        return in.refuse("length", expected, Long.toUnsignedString(size), start);
    }

    /** Number of octets of the number at this place of a hexadecimal pattern; -1 if it matches no form. */
    int sizeIn(String pattern) {
        return forms.stream()
                .filter(form -> pattern.startsWith(Words.hex(form.tag, 0, form.tag.length)))
                .mapToInt(form -> form.tag.length + form.octets)
                .findFirst()
                .orElse(-1);
    }

    @Override
    void absent(RowWriter row) {
        body.absent(row);
    }

    @Override
    int room() {
        return body.room();
    }
}
