"""From a capture folder to tables and answers in an output folder."""
