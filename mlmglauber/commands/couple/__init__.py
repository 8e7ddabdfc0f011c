"""mlm-couple: pairs of coupled chains and the times at which they meet."""
