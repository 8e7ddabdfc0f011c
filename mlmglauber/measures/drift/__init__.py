"""Cosine drift of embeddings from a reference, its passages and its level."""
