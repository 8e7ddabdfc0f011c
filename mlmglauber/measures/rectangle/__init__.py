"""The rectangle test and entropy production: whether conditionals fit a joint law."""
