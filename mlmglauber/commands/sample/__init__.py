"""mlm-sample: Glauber chains from texts."""
