package specwire.generated.java;

import java.util.ArrayList;
import java.util.List;

/**
 * Adjacent constants, plain integers and padding, read at once.
 *
 * <p>This only detects that something is wrong; the operations, one after the other, then find the fault.
 */
final class Fixed extends Operation {
    /** Constant octets, at most eight of them, as a number. */
    private record Constant(int offset, int octets, long number) {}

    private final Operation[] operations;
    private final Constant[] constants;
    private final Number[] numbers;
    private final int[] offsets;
    private final int size;

    Fixed(Operation... operations) {
        super(null);
        this.operations = operations;
        List<Constant> found = new ArrayList<>();
        numbers = new Number[operations.length];
        offsets = new int[operations.length];
        int at = 0;
        for (int index = 0; index < operations.length; index++) {
            offsets[index] = at;
            numbers[index] = operations[index] instanceof Number number ? number : null;
            if (operations[index] instanceof Expect constant) {
                add(found, at, constant.wanted());
            }
            at += operations[index].octets();
        }
        size = at;
        constants = found.toArray(new Constant[0]);
    }

    /** Whether operations of this kind can be read at once. */
    static boolean holds(Operation operation) {
        return operation instanceof Expect constant && !constant.isFolded()
                || operation instanceof Number number && number.isPlain()
                || operation instanceof Pad && operation.octets() >= 0;
    }

    /** Adds a constant in pieces, the first joined with the constant before it. */
    private static void add(List<Constant> found, int offset, byte[] octets) {
        for (int at = 0; at < octets.length; at++) {
            Constant last = found.isEmpty() ? new Constant(0, Long.BYTES, 0) : found.get(found.size() - 1);
            long octet = octets[at] & 0xff;
            if (last.octets < Long.BYTES && last.offset + last.octets == offset + at) {
                long both = last.number << Byte.SIZE | octet;
                found.set(found.size() - 1, new Constant(last.offset, last.octets + 1, both));
            } else {
                found.add(new Constant(offset + at, 1, octet));
            }
        }
    }

    @Override
    void read(Cursor in) {
        if (in.left() < size || !isRight(in)) {
            for (Operation operation : operations) {
                operation.read(in);
            }
            return;
        }
        for (int index = 0; index < numbers.length; index++) {
            if (numbers[index] != null) {
                numbers[index].write(in, offsets[index]);
            }
        }
        in.at += size;
    }

    private boolean isRight(Cursor in) {
        for (Constant constant : constants) {
            if (Bytes.number(in.octets, in.at + constant.offset, constant.octets) != constant.number) {
                return false;
            }
        }
        return true;
    }
}
