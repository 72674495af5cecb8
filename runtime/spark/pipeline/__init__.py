"""Pipeline from a capture folder to tables and answers in an output folder."""
