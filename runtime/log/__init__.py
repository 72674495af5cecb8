"""What every log of ours has in common: text from the wire made harmless, and lines at a bounded rate."""
