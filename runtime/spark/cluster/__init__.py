"""Package folders for clusters: the code that executors need, and the commands that submit it."""
