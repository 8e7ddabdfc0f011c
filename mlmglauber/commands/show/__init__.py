"""mlm-show: shows chains as they are rewritten, on a terminal or as plain text."""
