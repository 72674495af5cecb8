package specwire.generated.java;

/**
 * Where errors say that an operation is.
 *
 * @param name the name of the field; empty for an item of a list, which errors name after the list
 * @param rule the grammar's rule
 */
public record Field(String name, String rule) {}
