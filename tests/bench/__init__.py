"""Speed and memory, each figure a ratio against a named alternative in the same run: `make bench`."""
