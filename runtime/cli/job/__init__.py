"""Job of `specwire run`: four protocols on loopback, one capture, one set of tables, one report."""
