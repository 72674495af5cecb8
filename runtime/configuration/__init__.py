"""One file for the settings of every server, and environment variables over it."""
