"""A bound on how much the context can change a conditional, proved by the model's head alone, for every text.

In BERT, RoBERTa, ELECTRA, ALBERT, DistilBERT, ModernBERT and similar models the input of the decoder is a LayerNorm,

    y = g * u + b,   u = (h - mean h) / sqrt(var h + e),   so |u|^2 = d var h / (var h + e) <= d,
    l(v) = W_v . y + c_v = (g * W_v) . u + W_v . b + c_v.

Let u and u' belong to two contexts. In the difference between them of l(v) - l(w), b and c cancel:

    [l(v) - l(w)] - [l'(v) - l'(w)] = (g * W_v - g * W_w) . (u - u')  <=  |g * W_v - g * W_w| 2 sqrt(d)

by Cauchy-Schwarz. The rows g * W_v of the allowed tokens lie in a ball of radius R, so any two are at most 2 R apart,
and log p - log p' of two conditionals of one site has an oscillation (largest minus smallest value) of at most

    D = 4 sqrt(d) R.

Tempering divides it by tau. Two distributions whose log-ratio oscillates by D / tau have a total variation distance of
at most tanh(D / (4 tau)); two letters of probabilities 1 / (1 + exp(-+ D / (2 tau))) attain it. The bound holds for the
model's weights in exact arithmetic and for any encoder; computed conditionals add rounding.
"""

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK = 8192
"""Number of rows of the decoder that are converted to float64 at a time."""
OUTERMOST = 1024
"""Number of rows from which the centre of the ball is computed; the radius is then measured over all rows."""
STEPS = 1000
"""Number of steps towards the centre; after k steps the radius is at most 1 + 1 / sqrt(k) times the smallest one
(Badoiu and Clarkson 2003)."""

Rows = NDArray[np.float64]


class HeadBound(NamedTuple):
    """oscillation: D in nats at tau = 1, None where the head gives no bound. reason: why it gives none."""

    oscillation: float | None
    reason: str | None


def head_bound(model: Any) -> HeadBound:
    """The bound D of a TextModel.

    A forward pass checks that the input of the decoder is a LayerNorm and that its output is the logits.
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
    """(the LayerNorm whose output is the decoder's input, ""), or (None, the reason why there is no such LayerNorm).

    The tensors must be the same objects: any operation between, such as a cap on the logits, would make new ones.
    """
    decoder = lm.model.get_output_embeddings()
    if not _is_plain(decoder, "Linear"):
        return None, "the decoder is not a plain linear layer"
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
    """The rows g * W_v of the allowed tokens, computed in float64 on access, so that they are never all in memory."""

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
    """The radius of a ball that contains all rows, usually a few per cent above the smallest one.

    rows: (V, d), an array or an object that computes rows on access. The result is an upper bound for any centre.

    >>> enclosing_radius(np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]])) < 1.05
    True
    """
    centre = sum(block.sum(axis=0) for block in _blocks(rows)) / len(rows)
    distances = _distances(rows, centre)
    outermost = rows[np.sort(np.argsort(-distances, kind="stable")[:OUTERMOST])]
    squares = (outermost**2).sum(axis=1)
    for k in range(1, STEPS + 1):
        # |a - c|^2 - |c|^2, since |c|^2 is the same for all rows
        farthest = outermost[int((squares - 2 * outermost @ centre).argmax())]
        centre = centre + (farthest - centre) / (k + 1)
    radius = min(float(distances.max()), float(_distances(rows, centre).max()))
    return radius * (1 + 1e-9)  # for the rounding of float64


def _distances(rows: Any, centre: Rows) -> Rows:
    return np.concatenate([np.linalg.norm(block - centre, axis=1) for block in _blocks(rows)])
