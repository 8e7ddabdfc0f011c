"""Traps: states in which a chain stays, their margins, basins and expected residence."""
