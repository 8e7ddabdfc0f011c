"""Reads and writes records: JSON Lines, other input formats, errors, exit statuses."""
