"""Scores of texts without a chain: log-probabilities of their tokens, PLL, perplexities, ranks, margins."""
