package specwire.generated.java;

/** Operations on adjacent octets, one after the other. */
final class Body {
    private final Operation[] operations;

    Body(Operation... operations) {
        this.operations = operations;
    }

    Operation[] operations() {
        return operations;
    }

    void read(Cursor in) {
        for (Operation operation : operations) {
            operation.read(in);
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
