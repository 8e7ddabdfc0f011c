"""mlm-traps: where chains get stuck, and why."""
