"""mlm-plot: pictures of records."""
