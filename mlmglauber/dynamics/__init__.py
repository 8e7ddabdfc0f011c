"""How chains move."""
