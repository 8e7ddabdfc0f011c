"""mlm-embed: embeddings of texts."""
