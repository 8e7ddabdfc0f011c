"""Meeting times of coupled chains and the bounds they give."""
