"""What a conditional says of given tokens: log-probability, margin and rank.

`token_scores` is the reference in numpy; `device_token_scores` computes the same on the device of a model, so that a
few numbers a row are copied back, not V.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.models.blocks import Floats, Ids

CACHED = 1 << 18
"""Maximum number of logits that a CPU processes at a time: 1 MiB in float32."""


class TokenScores(NamedTuple):
    """Scores of K tokens v at the sites of B conditionals p, each array (B, K); log-probabilities in nats at tau = 1.

    logp: log p(v), -inf for a token that is never drawn. gamma: the margin of v, see `margins_above`. rank: 1 for the
    token that tau = 0 draws, 2 for the next one, and so on; of equally likely tokens the lowest id comes first.
    Of a row that is no distribution, and where no token was asked for (FILL), logp and gamma are NaN and rank is 0.
    """

    logp: NDArray[np.float64]
    gamma: NDArray[np.float64]
    rank: NDArray[np.int64]


def margins_above(present: Floats, rival: Floats) -> Floats:
    """gamma = log p(v) - max_{w != v} log p(w), by how much a token is likelier than each other one, in nats.

    present: log p(v) of the tokens. rival: the largest log-probability of another token, at each of them. -inf for a
    token of probability 0, +inf where no other token is allowed.

    >>> margins_above(np.array([np.log(0.7), np.log(0.2), -np.inf]), np.log([0.2, 0.7, 1.0])).round(3)
    array([ 1.253, -1.253,   -inf])
    """
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(present == -np.inf, -np.inf, present - rival))


def token_scores(rows: Floats, tokens: Ids) -> TokenScores:
    """The scores of (B, K) tokens, FILL where none is asked for, from (B, V) log-probabilities.

    >>> scores = token_scores(np.log([[0.2, 0.7, 0.1]]), np.array([[1, 2]]))
    >>> scores.logp.round(3).tolist(), scores.gamma.round(3).tolist(), scores.rank.tolist()
    ([[-0.357, -2.303]], [[1.253, -1.946]], [[1, 3]])
    """
    rows = np.asarray(rows, dtype=np.float64)
    places, vocab = np.arange(len(rows)), rows.shape[1]
    best = rows.argmax(axis=1)
    first = rows[places, best]  # not-a-number is the maximum of its row
    rest = rows.copy()
    rest[places, best] = -np.inf
    second = rest.max(axis=1)
    given = np.maximum(tokens, 0)
    logp = np.take_along_axis(rows, given, axis=1)
    gamma = margins_above(logp, np.where(given == best[:, None], second[:, None], first[:, None]))
    rank = np.zeros(tokens.shape, dtype=np.int64)
    for k in range(tokens.shape[1]):
        own, token = logp[:, k, None], given[:, k, None]
        rank[:, k] = 1 + ((rows > own) | ((rows == own) & (np.arange(vocab) < token))).sum(axis=1)
    return _known(logp, gamma, rank, (tokens >= 0) & np.isfinite(first)[:, None])


def device_token_scores(torch: Any, logits: Any, tokens: Any) -> TokenScores:
    """As token_scores, from a tensor of (B, V) logits, -inf for banned tokens, and a tensor of (B, K) tokens."""
    rows = len(logits) if logits.is_cuda else max(1, CACHED // logits.shape[1])
    parts = [_part(torch, logits[k : k + rows], tokens[k : k + rows]) for k in range(0, len(logits), rows)]
    logp, rival, rank, finite = (torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True))
    return _known(logp, margins_above(logp, rival), rank, (tokens.cpu().numpy() >= 0) & finite[:, None])


def _part(torch: Any, logits: Any, tokens: Any) -> tuple[Any, ...]:
    """(log-probabilities, those of the likeliest other tokens, ranks) of tokens, and (B,) which rows are finite."""
    vocab = logits.shape[1]
    two = logits.topk(min(2, vocab), dim=1)
    first, best = two.values[:, :1], two.indices[:, :1]
    second = two.values[:, 1:] if vocab > 1 else torch.full_like(first, -torch.inf)
    given = tokens.clamp(min=0)
    own = logits.gather(1, given)
    total = torch.logsumexp(logits, dim=1, keepdim=True).double()
    rival = torch.where(given == best, second, first)
    ids = torch.arange(vocab, device=logits.device)
    rank = torch.zeros_like(given)
    for k in range(tokens.shape[1]):
        above = logits > own[:, k : k + 1]
        ties = (logits == own[:, k : k + 1]) & (ids < given[:, k : k + 1])
        rank[:, k] = 1 + (above | ties).sum(dim=1)
    return own.double() - total, rival.double() - total, rank, torch.isfinite(total[:, 0])


def _known(logp: Floats, gamma: Floats, rank: Ids, known: NDArray[np.bool_]) -> TokenScores:
    """Scores of the rows and tokens that have one; see TokenScores for the others."""
    return TokenScores(np.where(known, logp, np.nan).astype(np.float64), np.where(known, gamma, np.nan),
                       np.where(known, rank, 0))
