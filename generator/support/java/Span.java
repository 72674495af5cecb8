package specwire.generated.java;

/** How many octets a value has: counted by an integer in front, always the same, all that is left, or up to others. */
public abstract class Span {
    private Span() {}

    /** Finds the content of the value at the place: sets its beginning, and moves behind it. */
    abstract void open(Place place);

    /** How many octets it always is, -1 where that differs. */
    int fixedSize() {
        return -1;
    }

    /** As many as an integer of so many octets before them says. */
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

    /** Always so many. */
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

    /** All that is left of the run. */
    public static Span rest() {
        return new Span() {
            @Override
            void open(Place place) {
                place.begin = place.at;
                place.at = place.end;
            }
        };
    }

    /** Up to where these octets stand first, which are the constant behind the value. */
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
