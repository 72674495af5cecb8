// Written by specwire from generator/support/java/Field.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

/** Value in a frame: its name in errors, its grammar rule, its type. */
public final class Field {
    private final String name;
    private final String rule;
    private final Type type;
    private final boolean flags;
    private final boolean optional;

    public Field(String name, String rule, Type type) {
        this(name, rule, type, false, false);
    }

    private Field(String name, String rule, Type type, boolean flags, boolean optional) {
        this.name = name;
        this.rule = rule;
        this.type = type;
        this.flags = flags;
        this.optional = optional;
    }

    /** The same field, as the octet whose bits announce parts. */
    public Field asFlags() {
        return new Field(name, rule, type, true, optional);
    }

    /** The same field, but the run may end before it; then it and all later fields are null. */
    public Field asOptional() {
        return new Field(name, rule, type, flags, true);
    }

    String name() {
        return name;
    }

    String rule() {
        return rule;
    }

    Type type() {
        return type;
    }

    boolean isFlags() {
        return flags;
    }

    boolean isOptional() {
        return optional;
    }

    boolean implied() {
        return type.implied();
    }
}
