"""mlm-basins: which region of the embedding space a chain is in, and for how long."""
