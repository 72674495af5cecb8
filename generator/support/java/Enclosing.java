package specwire.generated.java;

/** A record, or one of several: a value that another one inside it can repeat. */
interface Enclosing {
    /** Reads the value into a column; the cursor has its path. */
    void read(Cursor in, int column);
}
