"""mlm-tokens: how a model cuts texts into tokens."""
