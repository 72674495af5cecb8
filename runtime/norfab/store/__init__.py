"""Stores of NORFAB's peers: SQLite databases that are written by one thread each, many tickets in one commit."""
