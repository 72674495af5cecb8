"""Spark sessions: the Java process, its settings, and interrupts."""
