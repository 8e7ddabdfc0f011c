"""Drift in Python: embeddings of texts, their distances to a start, and a summary for each temperature."""

from array import array
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.api.chains import Trajectory
from mlmglauber.api.checks import python_errors
from mlmglauber.api.progress import without_widget_warning

if TYPE_CHECKING:
    from mlmglauber.measures.drift.series import DriftSeries
    from mlmglauber.models.embedder import Embedded, Embedder

Values = NDArray[np.float64]


class DriftSummary(NamedTuple):
    """Drift of the chains of one temperature and length, as a row of the table of `mlm-drift --summary`.

    tau: temperature. n: number of sites. chains, texts: their numbers. plateau: mean drift over the second halves of
    the chains, with the 95 % interval over texts plateau_low, plateau_high, for 4 texts or more. frozen: number of
    chains whose drift is constant there. hits: number of chains whose drift reached the threshold. median: Kaplan-Meier
    median of their hitting times in steps, with its interval, unless over half are censored. median_at_least: its lower
    end where states are some steps apart. c: that of median = c n ln n. rhat_rank, ess_bulk: diagnostics of the
    distances to one text that is the same for all chains (see diagnose). A number that is not known is NaN.
    """

    tau: float
    n: int
    chains: int
    texts: int
    plateau: float
    plateau_low: float
    plateau_high: float
    frozen: int
    hits: int
    median: float
    median_low: float
    median_high: float
    median_at_least: float
    c: float
    rhat_rank: float
    ess_bulk: float


@python_errors()
def embed(texts: Sequence[str], *, model: str = "all-MiniLM-L6-v2", **options: Any) -> "Embedded":
    """Embeddings of texts by a sentence-transformers model, as `mlm-embed` makes them.

    options: device, revision, rows, normalize, prompt, prompt_name, dims, trust_remote_code, allow_pickle. Identical
    texts are embedded once, and the model stays open for the next call. Returns vectors (T, d) float32, tokens (T,) and
    truncated (T,), True for a text longer than the model takes. ModelError for a model that cannot be opened,
    ValueError for one text in the place of a list.
    """
    if isinstance(texts, str):
        raise ValueError("texts is one text; give a list of texts")
    if any(not isinstance(text, str) for text in texts):
        raise ValueError("an item of texts is not a text; give a list of texts")
    return _embedder(model, **options).encode(list(texts))


@lru_cache(maxsize=2)
def _embedder(model: str, **options: Any) -> "Embedder":
    """The embedder of a name; opening one takes longer than embedding some hundred texts."""
    from mlmglauber.models.embedder import Embedder

    with without_widget_warning():
        return Embedder.open(model, **options)


def drift(embeddings: NDArray[Any], reference: NDArray[Any] | None = None, *,
          chains: Sequence[int] | NDArray[np.int64] | None = None) -> Values:
    """1 - cosine similarity of each embedding to a reference.

    embeddings: (T, d). reference: (d,), by default the first embedding. chains: (T,) the chain of each embedding, whose
    first one is then its reference. Returns (T,), NaN where an embedding is zero or not finite. As in the commands,
    embeddings are rounded to float32. ValueError for arrays of another shape.

    >>> import numpy as np
    >>> import mlmglauber as mg
    >>> mg.drift(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])).tolist()
    [0.0, 1.0, 0.0]
    """
    from mlmglauber.measures.drift.cosine import Reference

    vectors = np.asarray(embeddings, dtype=np.float32)
    if vectors.ndim != 2 or not vectors.size:
        raise ValueError(f"embeddings have the shape {vectors.shape}; give (T, d), one row a text")
    if chains is not None and (reference is not None or len(chains) != len(vectors)):
        raise ValueError("chains need one number for each embedding, and no reference")
    start = vectors[0] if reference is None else np.asarray(reference, dtype=np.float32)
    if start.shape != vectors.shape[1:]:
        raise ValueError(f"the reference has the shape {start.shape}, an embedding {vectors.shape[1:]}")
    names = [0] * len(vectors) if chains is None else [int(chain) for chain in chains]
    known: dict[int, Reference] = {} if chains is not None else {0: Reference(start)}
    drifts = np.full(len(vectors), np.nan)
    for k, (name, vector) in enumerate(zip(names, vectors, strict=True)):
        if name not in known:
            known[name] = Reference(vector)
        value, _ = known[name].drift(vector)
        drifts[k] = np.nan if value is None else value
    return drifts


def drift_summary(trajectories: Sequence[Trajectory], embeddings: Sequence[NDArray[Any]], *, threshold: float = 0.5,
                  texts: Sequence[Hashable] | None = None, every_change: bool = False) -> list[DriftSummary]:
    """The drift of chains from their starts, summarised for each temperature and length.

    trajectories: the chains of one text at one temperature or several each. embeddings: for each trajectory of S
    states an array (S, d). threshold: the drift that counts as a hit. texts: the text of each trajectory, by default
    one text each; intervals resample texts, so name trajectories alike that start from the same one. every_change:
    whether the states are those of sample(every=None). Rows are ordered by temperature, then by length. ValueError
    where shapes do not fit.

    >>> import numpy as np
    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> chains = mg.states_to_arrays(mg.sample(model, "a b", steps=8, chains=2, seed=1))
    >>> [(row.tau, row.chains) for row in mg.drift_summary([chains], [np.eye(3)[chains.ids.sum(axis=1)]])]
    [(1.0, 2)]
    """
    from mlmglauber.measures.drift.summary import of_group
    from mlmglauber.measures.statistics.chain_groups import grouped

    trajectories = [trajectories] if isinstance(trajectories, Trajectory) else trajectories
    if len(embeddings) != len(trajectories) or (texts is not None and len(texts) != len(trajectories)):
        raise ValueError(f"{len(trajectories)} trajectories need as many arrays of embeddings and, if given, texts")
    series: list[DriftSeries] = []
    common: dict[tuple[float, int], NDArray[Any]] = {}
    for k, (trajectory, vectors) in enumerate(zip(trajectories, embeddings, strict=True)):
        text = str(k if texts is None else texts[k])
        series += _series(trajectory, np.asarray(vectors), text, every_change, common)
    rows = []
    for (_, tau, n), chains in grouped(series, lambda chain: (None, chain.tau, chain.n)):
        found = of_group(chains, [threshold])
        plateau, hitting, mixed = found.plateau, found.hitting[0], found.diagnostics.diagnostics
        median = hitting.median
        rows.append(DriftSummary(
            tau, n, found.chains, found.texts, _known(plateau.value), _known(plateau.low), _known(plateau.high),
            found.frozen, hitting.hits, _known(median.value), _known(median.low), _known(median.high),
            _known(hitting.median_at_least), _known(hitting.c.value), _known(mixed and mixed.rhat_rank),
            _known(mixed and mixed.ess_bulk)))
    return rows


def _known(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _series(trajectory: Trajectory, vectors: NDArray[Any], text: str, every_change: bool,
            common: dict[tuple[float, int], NDArray[Any]]) -> "Iterator[DriftSeries]":
    """The drifts of each chain; common: for each temperature and length the embedding that distances are taken to."""
    from mlmglauber.measures.drift.cosine import Reference
    from mlmglauber.measures.drift.series import DriftSeries

    if vectors.ndim != 2 or len(vectors) != len(trajectory.step):
        raise ValueError(f"embeddings have the shape {vectors.shape}; give one row for each of "
                         f"the {len(trajectory.step)} states")
    for tau, number in dict.fromkeys(zip(trajectory.tau.tolist(), trajectory.chain.tolist(), strict=True)):
        rows = np.flatnonzero((trajectory.tau == tau) & (trajectory.chain == number))
        steps, own, n = trajectory.step[rows], vectors[rows], trajectory.ids.shape[1]
        if (np.diff(steps) <= 0).any():
            raise ValueError(f"chain {number} at tau {tau:g} has states of one step twice or out of order; name each "
                             "chain by its own number")
        known = [vector for vector in own if Reference(vector.astype(np.float32)).reason is None]
        reference = common.get((tau, n), own[0])
        if known:
            reference = common.setdefault((tau, n), known[0])
        yield DriftSeries(None, text, number, tau, n, shows_all=every_change, steps=array("q", steps.tolist()),
                          drifts=array("d", drift(own).tolist()), distances=array("d", drift(own, reference).tolist()))
