"""Influence matrices and the mixing bounds that follow from them."""
