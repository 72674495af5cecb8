// Written by specwire from generator/support/java/Tags.java. Do not edit; change that file and run `make generate`.
package specwire.generated.java;

import java.util.Arrays;
import java.util.List;

/** Octets that distinguish forms inside a run. */
final class Tags {
    private Tags() {}

    /** The fault that the place has none of these octets. */
    static Refusal refuse(Place place, List<byte[]> tags, String kind) {
        int most = tags.stream().mapToInt(tag -> tag.length).max().orElse(0);
        byte[] found = Arrays.copyOfRange(place.frame, place.at, Math.min(place.end, place.at + most));
        boolean cut = tags.stream().anyMatch(tag -> Bytes.begins(tag, found));
        return place.refuse(cut ? "length" : kind, Words.oneOf(tags), Words.show(found), place.at);
    }
}
