"""Expectations under the stationary distribution, from coupled chains."""
