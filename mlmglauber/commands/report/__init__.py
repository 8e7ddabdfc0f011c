"""mlm-report: one page on all records of an experiment."""
