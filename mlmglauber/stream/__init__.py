"""Records in and out: JSON Lines, errors, exit statuses."""
