"""mlm-estimate: stationary means without bias, from coupled chains with a lag."""
