"""HTML report of the results of a run."""
