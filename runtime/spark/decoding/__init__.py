"""Frames to typed rows on Spark, and back."""
