"""What the page shows of each server, made of its status document."""
