"""Finite chains that are solved exactly: transition matrix, stationary law, mixing times."""
