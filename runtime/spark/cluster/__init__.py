"""What a cluster needs of us: an archive of the package for its executors, and the lines that submit it."""
