"""How far a context can move a model's logits: a bound that its head alone proves, for every text.

In BERT, RoBERTa, ELECTRA, ALBERT, DistilBERT, ModernBERT and their like the decoder reads a LayerNorm,

    y = g * u + b,   u = (h - mean h) / sqrt(var h + e),   so |u|^2 = d var h / (var h + e) <= d,
    l(v) = W_v . y + c_v = (g * W_v) . u + W_v . b + c_v.

Let u and u' belong to two contexts. In the difference of differences of two tokens' logits, b and c cancel:

    [l(v) - l(w)] - [l'(v) - l'(w)] = (g * W_v - g * W_w) . (u - u')  <=  |g * W_v - g * W_w| 2 sqrt(d)

by Cauchy-Schwarz. The rows g * W_v of the allowed tokens lie in a ball of radius R, so any two are at most 2 R apart,
and log p - log p' of two conditionals of one site has an oscillation (largest minus smallest value) of at most

    D = 4 sqrt(d) R.

Tempering divides it by tau, and laws whose log-ratio oscillates by D / tau are at most tanh(D / (4 tau)) apart in total
variation (two letters of probabilities 1 / (1 + exp(-+ D / (2 tau))) reach it). This is a statement about the model's
weights in exact arithmetic, whatever its encoder does; a computed conditional adds its rounding.
"""

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK = 8192
"""Rows of the decoder made float64 at a time."""
OUTERMOST = 1024
"""The centre of the ball is found from so many rows; its radius is then measured over all."""
STEPS = 1000
"""Steps towards the centre: after k the radius is within a factor 1 + 1 / sqrt(k) (Badoiu and Clarkson 2003)."""

Rows = NDArray[np.float64]


class HeadBound(NamedTuple):
    """D in nats at tau = 1, None where the head proves none, and then the reason."""

    oscillation: float | None
    reason: str | None


def head_bound(model: Any) -> HeadBound:
    """D of a model's head, after a forward pass has shown that the decoder reads a LayerNorm and makes the logits.

    model: a TextModel; all but a MaskedLM have no head.
    """
    if model.model is None:
        return HeadBound(None, "a table of conditionals has no head")
    norm, reason = _norm_before_decoder(model)
    if norm is None:
        return HeadBound(None, reason)
    decoder = model.model.get_output_embeddings()
    gain = _float64(norm.weight) if norm.weight is not None else np.ones(decoder.in_features)
    radius = enclosing_radius(_Scaled(decoder.weight, gain, np.flatnonzero(model.allowed)))
    return HeadBound(4 * sqrt(decoder.in_features) * radius, None)


def _norm_before_decoder(lm: Any) -> tuple[Any, str]:
    """The LayerNorm whose output is the decoder's very input while the decoder's output is the logits; or why none is.

    The tensors must be the same objects: whatever stood between, such as a cap on the logits, would make new ones.
    """
    decoder = lm.model.get_output_embeddings()
    if not _is_plain(decoder, "Linear"):
        return None, "the decoder is no plain linear layer"
    norms: list[tuple[Any, Any]] = []
    passed: dict[str, Any] = {}

    def at_norm(module: Any, _: Any, output: Any) -> None:
        norms.append((module, output))

    def at_decoder(_: Any, arguments: Any, output: Any) -> None:
        passed.update(read=arguments[0], made=output)

    def at_end(_: Any, __: Any, output: Any) -> None:
        passed["logits"] = output.logits

    hooks = [module.register_forward_hook(at_norm) for module in lm.model.modules() if _is_plain(module, "LayerNorm")]
    hooks += [decoder.register_forward_hook(at_decoder), lm.model.register_forward_hook(at_end)]
    try:
        lm.log_probs(np.flatnonzero(lm.allowed)[None, :1], np.array([0]))
    finally:
        for hook in hooks:
            hook.remove()
    if passed.get("made") is None or passed["made"] is not passed["logits"]:
        return None, "the logits are not the decoder's output as it is"
    before = [module for module, output in norms if output is passed["read"]]
    if not before or before[0].normalized_shape != (decoder.in_features,):
        return None, "the decoder does not read a LayerNorm"
    return before[0], ""


def _is_plain(module: Any, kind: str) -> bool:
    return type(module).__name__ == kind and type(module).__module__.startswith("torch.nn.")


def _float64(tensor: Any) -> Rows:
    return np.asarray(tensor.detach().double().cpu().numpy())


class _Scaled:
    """The rows g * W_v of the allowed tokens, made float64 block by block: a large vocabulary is never held so."""

    def __init__(self, weight: Any, gain: Rows, tokens: NDArray[np.int64]) -> None:
        self.weight, self.gain, self.tokens = weight, gain, tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, places: Any) -> Rows:
        return _float64(self.weight[self.tokens[places]]) * self.gain


def _blocks(rows: Any) -> Iterator[Rows]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]


def enclosing_radius(rows: Any) -> float:
    """The radius of a ball around all rows, as a rule a few per cent above the least one.

    rows: (V, d), an array or what makes the rows that it is asked for. Any centre gives a ball that holds them all, so
    the result is a bound however good the centre is.

    >>> enclosing_radius(np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]])) < 1.05
    True
    """
    centre = sum(block.sum(axis=0) for block in _blocks(rows)) / len(rows)
    distances = _distances(rows, centre)
    outermost = rows[np.sort(np.argsort(-distances, kind="stable")[:OUTERMOST])]
    squares = (outermost**2).sum(axis=1)
    for k in range(1, STEPS + 1):
        # |a - c|^2 - |c|^2: the norm of the centre is the same for all
        farthest = outermost[int((squares - 2 * outermost @ centre).argmax())]
        centre = centre + (farthest - centre) / (k + 1)
    radius = min(float(distances.max()), float(_distances(rows, centre).max()))
    return radius * (1 + 1e-9)  # float64's own rounding


def _distances(rows: Any, centre: Rows) -> Rows:
    return np.concatenate([np.linalg.norm(block - centre, axis=1) for block in _blocks(rows)])
