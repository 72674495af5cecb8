"""The job of `specwire run`: four protocols at work on loopback, one capture, one set of tables, one report."""
