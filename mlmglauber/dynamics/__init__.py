"""How chains move: random numbers, draws, engines and couplings."""
