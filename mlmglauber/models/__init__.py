"""Where conditionals come from."""
