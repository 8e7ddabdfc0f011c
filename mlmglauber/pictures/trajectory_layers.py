"""The layers that draw trajectories: a cloud of all states, lines of a few chains, first and last states."""

from collections.abc import Sequence

import numpy as np

from mlmglauber.pictures.palette import BLACK, category
from mlmglauber.pictures.panel import Cloud, Curve, Layer, Panel, Picture, Points, Values
from mlmglauber.pictures.trajectories import PlaneTrajectory, Trajectories

CHAINS = 6
"""Maximum number of chains that are drawn with lines; more would hide each other."""
ENDS = "^Dv>*P"
"""Marks of last states, one for each chain with a line; squares mark first states."""


def expanded(picture: Picture) -> Picture:
    """The picture with simple layers in the place of trajectories."""
    return picture._replace(panels=[_expanded(panel) for panel in picture.panels])


def _expanded(panel: Panel) -> Panel:
    layers: list[Layer] = []
    for layer in panel.layers:
        layers += _parts(layer) if isinstance(layer, Trajectories) else [layer]
    return panel._replace(layers=layers)


def _parts(trajectories: Trajectories) -> list[Layer]:
    chains = trajectories.chains
    few = len(chains) <= CHAINS
    x, y, steps = (np.concatenate(columns) for columns in zip(*((chain.x, chain.y, chain.steps) for chain in chains),
                                                              strict=True))
    late = np.argsort(steps, kind="stable")
    layers: list[Layer] = [Curve(chain.x, chain.y, "", category(k).color, faint=True)
                           for k, chain in enumerate(chains) if few]
    layers.append(Cloud(x[late], y[late], steps[late], trajectories.unit))
    if len(chains) <= 4 * CHAINS:
        layers.append(Points(*_at(chains, 0), "first state", BLACK, "s", hollow=True))
    if few:
        layers += [Points(*_at([chain], -1), f"last state, {chain.name}", category(k).color, ENDS[k])
                   for k, chain in enumerate(chains)]
    elif len(chains) <= 4 * CHAINS:
        layers.append(Points(*_at(chains, -1), "last state", BLACK, ENDS[0]))
    return layers


def _at(chains: Sequence[PlaneTrajectory], place: int) -> tuple[Values, Values]:
    """The x and y coordinates of one state of each chain."""
    return np.array([chain.x[place] for chain in chains]), np.array([chain.y[place] for chain in chains])
