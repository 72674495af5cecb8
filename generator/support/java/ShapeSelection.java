package specwire.generated.java;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * Messages told apart by their shape and sender: messages that the sender does not send are skipped, and if two have
 * the same shape, the sender decides.
 */
final class ShapeSelection extends Selection {
    private final List<String> roles;
    private final Shape[] shapes;

    /** The letters of all senders, and the shapes, the most specific first. */
    ShapeSelection(List<String> roles, List<Shape> shapes) {
        this.roles = roles;
        this.shapes = shapes.toArray(new Shape[0]);
    }

    @Override
    Message find(Protocol protocol, Cursor in, String sender) {
        for (Shape shape : shapes) {
            if (shape.fits(in, folded)) {
                if (shape.needsSender() && sender == null) {
                    break;
                }
                if (isSent(shape, sender)) {
                    return protocol.message(shape.className());
                }
            }
        }
        throw unknown(protocol, in, sender);
    }

    /** Whether a sender can send the message; an unknown sender can send all that need no sender. */
    private boolean isSent(Shape shape, String sender) {
        boolean known = sender != null && shape.senders().contains(sender);
        boolean other = sender != null && roles.contains(sender) && !shape.senders().isEmpty();
        return known || !shape.needsSender() && !other;
    }

    /** Reports where the nearest shapes fail. */
    private Refusal unknown(Protocol protocol, Cursor in, String sender) {
        List<String> options = sent(in);
        if (!options.isEmpty()) {
            String found = sender == null ? "none" : Words.quoted(sender);
            return refuse(protocol, null, 0, 0, "tag", "a sender: " + String.join(" or ", options), found);
        }
        int index = Stream.of(shapes).mapToInt(shape -> shape.good(in, folded)).max().orElse(0);
        List<Shape> nearest = Stream.of(shapes).filter(shape -> shape.good(in, folded) == index).toList();
        List<Shape.Head> heads = new ArrayList<>();
        for (Shape shape : nearest) {
            if (index < shape.heads().length) {
                heads.add(shape.heads()[index]);
            }
        }
        if (index < in.count && heads.size() > 0 && heads.stream().noneMatch(head -> head.fits(in, index, folded))) {
            return unknown(protocol, in, index, heads);
        }
        List<String> counts = nearest.stream().map(Shape::least).distinct().sorted().map(String::valueOf).toList();
        String expected = String.join(" or ", counts) + " frames";
        return refuse(protocol, null, -1, -1, "frames", expected, Words.frames(in.count));
    }

    /** Reports a frame with none of these heads; octets that are open in all are skipped. */
    private Refusal unknown(Protocol protocol, Cursor in, int index, List<Shape.Head> heads) {
        byte[] frame = in.frame(index);
        int skipped = heads.stream().mapToInt(Shape.Head::open).min().orElse(0);
        List<String> sizes = heads.stream()
                .filter(head -> head.agrees(in, index, folded))
                .sorted(Comparator.comparing(Shape.Head::octets).thenComparing(Shape.Head::whole))
                .map(Shape.Head::size)
                .distinct()
                .toList();
        if (skipped > 0 && sizes.size() > 0) {
            return refuse(
                    protocol, null, index, 0, "length", Words.either(sizes), Integer.toString(frame.length));
        }
        List<String> starts = heads.stream().map(head -> head.start(skipped)).distinct().toList();
        int most = starts.stream().mapToInt(String::length).max().orElse(0) / 2;
        String found = Words.show(skipped > 0 ? Bytes.atMost(frame, skipped, most) : frame);
        return refuse(protocol, null, index, skipped, "tag", Words.oneStartOf(starts), found);
    }

    /** The classes that frames match, each with the senders for which they do. */
    private List<String> sent(Cursor in) {
        List<String> known = new ArrayList<>();
        List<String> options = new ArrayList<>();
        for (Shape shape : shapes) {
            List<String> senders = shape.senders().stream().filter(sender -> !known.contains(sender)).toList();
            if (!senders.isEmpty() && shape.fits(in, folded)) {
                known.addAll(senders);
                options.add(String.join(" or ", senders) + " for " + shape.className());
            }
        }
        return options;
    }
}
