"""mlm-score: scores of texts without a chain."""
