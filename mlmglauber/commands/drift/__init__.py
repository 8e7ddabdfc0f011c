"""mlm-drift: how far a chain's embeddings go from a reference."""
