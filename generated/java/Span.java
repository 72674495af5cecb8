// Written by specwire from generator/support/java/Span.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

/** Extent of a value: counted by an integer in front, fixed, the rest of the run, or up to a terminator. */
public abstract class Span {
    private Span() {}

    /** Finds the content of the value at the place: sets its start and advances past it. */
    abstract void open(Place place);

    /** The fixed number of octets, -1 if it varies. */
    int fixedSize() {
        return -1;
    }

    /** Counted by an integer in front. */
    public static Span prefix(int octets) {
        return new Span() {
            @Override
            void open(Place place) {
                long length = place.unsigned(octets);
                if (Long.compareUnsigned(length, place.left()) > 0) {
                    throw place.refuse(
                            "length", Words.octets(length), Integer.toString(place.left()), place.at);
                }
                place.begin = place.at;
                place.at += (int) length;
            }
        };
    }

    /** Fixed size. */
    public static Span fixed(int octets) {
        return new Span() {
            @Override
            void open(Place place) {
                place.need(octets);
                place.begin = place.at;
                place.at += octets;
            }

            @Override
            int fixedSize() {
                return octets;
            }
        };
    }

    /** The rest of the run. */
    public static Span rest() {
        return new Span() {
            @Override
            void open(Place place) {
                place.begin = place.at;
                place.at = place.end;
            }
        };
    }

    /** Up to the first occurrence of these octets, the constant after the value. */
    public static Span until(String hex) {
        byte[] octets = Hex.octets(hex);
        return new Span() {
            @Override
            void open(Place place) {
                int found = Bytes.indexOf(place.frame, octets, place.at, place.end);
                if (found < 0) {
                    String left = Words.show(place.frame, place.at, place.end);
                    throw place.refuse("text", Words.show(octets) + " behind it", left, place.at);
                }
                place.begin = place.at;
                place.at = found;
            }
        };
    }
}
