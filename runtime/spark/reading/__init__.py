"""Captured messages as DataFrames."""
