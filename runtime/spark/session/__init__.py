"""A Spark session: the Java process, its settings, and interrupts."""
