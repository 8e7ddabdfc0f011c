"""mlm-rect: the rectangle test of whether conditionals fit a joint law."""
