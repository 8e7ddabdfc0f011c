"""The input of a masked language model: states between special tokens, one site of each masked, padded on the right."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlmglauber.models.conditionals import FILL, Ids

WIDTHS = 8
"""Inputs are padded to a multiple of this number of tokens, so that texts of several lengths share forward passes."""


class MaskedInputs(NamedTuple):
    """tokens: (B, width). attention: (B, width), 1 where there is no padding. positions: (B,) those of the masks."""

    tokens: Ids
    attention: Ids
    positions: Ids


def masked_inputs(ids: Ids, sites: Ids, lengths: Ids, width: int, prefix: Sequence[int], suffix: Sequence[int],
                  mask_id: int, pad_id: int) -> MaskedInputs:
    """The inputs of B states.

    ids: (B, n), shorter states filled up with FILL. sites: (B,) the site of each that is masked. lengths: (B,) number
    of tokens of each. width: number of tokens of an input. prefix, suffix: special tokens around a state.
    """
    count, n = len(ids), int(lengths.max())
    rows, before = np.arange(count), len(prefix)
    tokens = np.full((count, width), pad_id, dtype=np.int64)
    tokens[:, :before] = prefix
    np.copyto(tokens[:, before : before + n], ids[:, :n], where=ids[:, :n] != FILL)
    positions = sites + before
    tokens[rows, positions] = mask_id
    for k, token in enumerate(suffix):
        tokens[rows, before + lengths + k] = token
    attention = (np.arange(width) < (lengths + before + len(suffix))[:, None]).astype(np.int64)
    return MaskedInputs(tokens, attention, positions)


def padded_widths(widths: Ids, limit: int, exact: bool, wider: int = 0) -> Ids:
    """(B,) the padded widths of inputs of (B,) tokens, special ones included, up to `limit`, the most a model takes.

    exact: do not pad to a multiple of WIDTHS. wider: number of tokens of padding to add.
    """
    if not exact:
        widths = np.maximum(widths, np.minimum(-(-widths // WIDTHS) * WIDTHS, limit))
    return np.maximum(widths, np.minimum(widths + wider, limit)) if wider else widths
