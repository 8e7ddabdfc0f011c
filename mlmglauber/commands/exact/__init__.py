"""mlm-exact: a small chain, solved exactly."""
