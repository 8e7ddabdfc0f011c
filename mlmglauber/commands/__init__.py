"""One file a command; base.py holds what they share."""
