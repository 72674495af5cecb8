"""Captured traffic on Spark: read, decode, typed tables, a summary and a report."""
