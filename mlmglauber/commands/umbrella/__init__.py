"""mlm: one command that lists and runs all others, and looks after the installation."""
