"""The command line: `main` is the root, and each sub-command is a module here."""
