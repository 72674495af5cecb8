package specwire.generated.java;

import java.util.List;

/** All messages of a protocol, and how they are told apart. */
public final class Protocol {
    private final String name;
    private final String edition;
    private final int announcing;
    private final Message[] messages;
    private final Selection selection;
    private final boolean headerLast;
    private int maxDepth;

    private Protocol(
            String name, String edition, int announcing, Selection selection, boolean headerLast,
            Message... messages) {
        this.name = name;
        this.edition = edition;
        this.announcing = announcing;
        this.selection = selection;
        this.headerLast = headerLast;
        this.messages = messages;
        for (int number = 0; number < messages.length; number++) {
            messages[number].setNumber(number);
        }
    }

    /** A protocol whose messages have tags; {@code announcing} are the bits of the flags octet that announce parts. */
    public static Protocol ofTags(
            String name, String edition, int announcing, List<Selector> selectors, Message... messages) {
        Selection selection = new TagSelection(selectors, messages);
        boolean headerLast = selectors.stream().anyMatch(selector -> selector.frame() < 0);
        return new Protocol(name, edition, announcing, selection, headerLast, messages);
    }

    /** A protocol whose messages have patterns. */
    public static Protocol ofPatterns(String name, String edition, int announcing, Message... messages) {
        return new Protocol(name, edition, announcing, new PatternSelection(messages), false, messages);
    }

    /**
     * A protocol whose messages have shapes, the most specific first; {@code roles} are the letters of all senders,
     * empty if the sender does not matter.
     */
    public static Protocol ofShapes(
            String name, String edition, int announcing, List<String> roles, List<Shape> shapes, Message... messages) {
        return new Protocol(name, edition, announcing, new ShapeSelection(roles, shapes), false, messages);
    }

    /** Limits how many records contain each other, which some can; at most 256. */
    public Protocol nested(int depth) {
        maxDepth = depth;
        return this;
    }

    /** Compares letters that identify messages in lower case; tags, patterns and heads are in lower case. */
    public Protocol folded() {
        selection.fold();
        return this;
    }

    /** The maximum number of records that contain each other, 0 if none contains itself. */
    int maxDepth() {
        return maxDepth;
    }

    String name() {
        return name;
    }

    String edition() {
        return edition;
    }

    int announcing() {
        return announcing;
    }

    Message[] messages() {
        return messages;
    }

    /** Whether a header is counted from the end of a message. */
    boolean hasHeaderLast() {
        return headerLast;
    }

    Message message(String className) {
        for (Message message : messages) {
            if (message.className().equals(className)) {
                return message;
            }
        }
        throw new IllegalArgumentException(className);
    }

    /** The message that frames claim to be; throws {@link Refusal} if there is none. */
    Message find(Cursor in, String sender) {
        return selection.find(this, in, sender);
    }
}
