"""What is drawn from records, one file a kind."""
