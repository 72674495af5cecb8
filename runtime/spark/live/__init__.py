"""A growing capture on Spark: watched as it grows, with alerts, and as a declarative pipeline."""
