"""mlm-influence: how much a change at one site changes the conditional of another."""
