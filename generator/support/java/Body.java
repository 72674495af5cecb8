package specwire.generated.java;

import java.util.ArrayList;
import java.util.List;

/** Operations on adjacent octets, one after the other. */
final class Body {
    private final Operation[] operations;
    /** The same, with adjacent ones of fixed size as one. */
    private final Operation[] steps;

    Body(Operation... operations) {
        this.operations = operations;
        List<Operation> found = new ArrayList<>();
        List<Operation> run = new ArrayList<>();
        for (Operation operation : operations) {
            if (Fixed.holds(operation)) {
                run.add(operation);
            } else {
                close(run, found);
                found.add(operation);
            }
        }
        close(run, found);
        steps = found.toArray(new Operation[0]);
    }

    private static void close(List<Operation> run, List<Operation> found) {
        if (run.size() > 1) {
            found.add(new Fixed(run.toArray(new Operation[0])));
        } else {
            found.addAll(run);
        }
        run.clear();
    }

    Operation[] operations() {
        return operations;
    }

    void read(Cursor in) {
        if (steps.length == 1) {
            steps[0].read(in);
            return;
        }
        for (Operation step : steps) {
            step.read(in);
        }
    }

    void absent(RowWriter row) {
        for (Operation operation : operations) {
            operation.absent(row);
        }
    }

    int room() {
        int room = 0;
        for (Operation operation : operations) {
            room += operation.room();
        }
        return room;
    }
}
