"""What every peer needs and no protocol owns: so far the durable store."""
