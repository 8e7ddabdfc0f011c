"""Glauber dynamics on masked language models, as Unix filters."""

__version__ = "0.1.0"
