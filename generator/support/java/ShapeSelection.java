package specwire.generated.java;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** Messages told apart by what they look like as a whole; where two look the same, by who sent them. */
final class ShapeSelection extends Selection {
    private final Shape[] shapes;

    /** The shapes, those that fix most first. */
    ShapeSelection(Shape... shapes) {
        this.shapes = shapes;
    }

    @Override
    Message find(Protocol protocol, Object[] frames, String sender) {
        for (Shape shape : shapes) {
            if (shape.fits(frames)) {
                if (shape.senders().isEmpty() || sender != null && shape.senders().contains(sender)) {
                    return protocol.message(shape.className());
                }
                if (sender == null) {
                    break;
                }
            }
        }
        throw unknown(protocol, frames, sender);
    }

    /** Says where the nearest shapes stop fitting. */
    private Refusal unknown(Protocol protocol, Object[] frames, String sender) {
        List<Shape> fitting = Stream.of(shapes).filter(shape -> shape.fits(frames)).toList();
        if (!fitting.isEmpty()) {
            List<String> options = new ArrayList<>();
            for (Shape shape : fitting) {
                options.add(String.join(" or ", shape.senders()) + " for " + shape.className());
            }
            String found = sender == null ? "none" : Words.quoted(sender);
            return refuse(protocol, null, 0, 0, "tag", "a sender: " + String.join(" or ", options), found, null);
        }
        int index = Stream.of(shapes).mapToInt(shape -> shape.good(frames)).max().orElse(0);
        List<Shape> nearest = Stream.of(shapes).filter(shape -> shape.good(frames) == index).toList();
        List<Shape.Head> heads = new ArrayList<>();
        for (Shape shape : nearest) {
            if (index < shape.heads().length) {
                heads.add(shape.heads()[index]);
            }
        }
        if (index < frames.length && !heads.isEmpty()) {
            byte[] frame = (byte[]) frames[index];
            if (heads.stream().noneMatch(head -> head.fits(frame))) {
                String found = Words.show(frame);
                return refuse(protocol, null, index, 0, "tag", Words.oneOf(constants(heads)), found, null);
            }
        }
        List<String> counts = nearest.stream().map(Shape::least).distinct().sorted().map(String::valueOf).toList();
        String expected = String.join(" or ", counts) + " frames";
        return refuse(protocol, null, -1, -1, "frames", expected, Words.frames(frames.length), null);
    }

    private static List<byte[]> constants(List<Shape.Head> heads) {
        List<byte[]> options = new ArrayList<>();
        for (Shape.Head head : heads) {
            byte[] octets = head.constants();
            if (options.stream().noneMatch(option -> Arrays.equals(option, octets))) {
                options.add(octets);
            }
        }
        return options;
    }
}
