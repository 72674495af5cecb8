"""Growing captures on Spark: a watch with tables, answers and alerts, and declarative pipelines."""
