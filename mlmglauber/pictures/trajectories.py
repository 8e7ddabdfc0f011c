"""Trajectories of chains in a plane: a layer of which a picture draws the parts, and a page one series a chain."""

from collections.abc import Sequence
from typing import NamedTuple

from mlmglauber.pictures.stripes import Values


class PlaneTrajectory(NamedTuple):
    """The states of a chain: places x and y (N,), and their steps (N,) in ascending order.

    hover: for each state what a page shows beside its step, in lines of text.
    """

    name: str
    x: Values
    y: Values
    steps: Values
    hover: Sequence[str]


class Trajectories(NamedTuple):
    """Chains whose states are coloured by step; unit: label of the colours."""

    chains: Sequence[PlaneTrajectory]
    unit: str
