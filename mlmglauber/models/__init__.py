"""Models: where the conditionals come from. Tables, masked and causal language models, sentence embedders."""
