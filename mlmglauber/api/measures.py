"""Measures in Python: rectangles, influences, exact small chains, traps, embeddings, drift."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.api.chains import State, Text, token_ids
from mlmglauber.api.checks import check_choice, check_count, check_sites, check_tau, check_words
from mlmglauber.dynamics.randomness import Stream, drawn_seed
from mlmglauber.models.conditionals import Ids, TextModel

if TYPE_CHECKING:
    from mlmglauber.measures.exact.solve import Exact
    from mlmglauber.measures.traps.tracker import Trap
    from mlmglauber.models.embedder import Embedded

Values = NDArray[np.float64]
Change = tuple[int, str | int]
"""A site, from 0, and the word or token id that is put there."""


class RectangleDelta(NamedTuple):
    """One rectangle: how far two conditionals are from fitting one joint law.

    i, j: the sites. tokens: (a, b, a', b'), the tokens in the text and the alternatives. delta: in nats,
    [log p_i(a'|b) - log p_i(a|b) + log p_j(b'|a') - log p_j(b|a')]
    - [log p_j(b'|a) - log p_j(b|a) + log p_i(a'|b') - log p_i(a|b')]; 0 for conditionals of one joint law.
    """

    i: int
    j: int
    tokens: tuple[int, int, int, int]
    delta: float


class RectangleDeltas(NamedTuple):
    """R rectangles of one text: sites (R, 2), alternatives (R, 2) token ids, delta (R,) in nats."""

    sites: Ids
    alternatives: Ids
    delta: Values


class Influence(NamedTuple):
    """Influences of n sites on each other.

    matrix: (n, n), entry (i, j) the largest total variation by which a change at site j was seen to move the
    conditional at site i, a lower estimate of the influence. alpha_row, alpha_column, alpha_spectral: its largest row
    sum, its largest column sum and its spectral radius. If the true ones are below 1, the chain mixes in O(n log n)
    steps; a lower estimate does not prove that.
    """

    matrix: Values
    alpha_row: float
    alpha_column: float
    alpha_spectral: float


def rectangle(model: TextModel, text: Text, first: Change, second: Change, *, tau: float = 1.0) -> RectangleDelta:
    """The rectangle of two changes of a text: what the two orders of making them disagree on, in nats.

    first, second: (site, word) or (site, token id). ValueError for a word that is not one token of the model, for equal
    sites, and for a token that the text has there already.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> abs(mg.rectangle(model, "a b", (0, "b"), (1, "a")).delta) < 1e-12  # these conditionals have a joint law
    True
    """
    from mlmglauber.measures.rectangle.delta import Rectangle, Rows, asks, measure
    from mlmglauber.models.words import token_of

    ids = np.array(token_ids(model, text), dtype=np.int64)
    check_tau(tau, zero=False)
    i, j = first[0], second[0]
    check_sites("the sites of the changes", (i, j), len(ids))
    a, b = (token_of(model, word, int(ids[site])) if isinstance(word, str) else int(word)
            for site, word in (first, second))
    for token in (int(ids[i]), int(ids[j]), a, b):
        if not 0 <= token < model.vocab_size or not model.allowed[token]:
            raise ValueError(f"token {token} is never drawn by the model and has no probability; choose another")
    if ids[i] == a or ids[j] == b:
        raise ValueError("an alternative is the token that the text has there; choose another")
    one = Rectangle(i, j, int(ids[i]), int(ids[j]), a, b)
    delta = measure(Rows(model, model.rows), asks(ids, one), tau).delta
    return RectangleDelta(i, j, (one.a, one.b, a, b), float(delta[0]))


def rectangles(model: TextModel, text: Text, *, count: int = 20, draw: str = "conditional", gap: int | None = None,
               tau: float = 1.0, seed: int | None = None, name: str = "0") -> RectangleDeltas:
    """Rectangles at drawn pairs of sites with drawn alternatives, as `mlm-rect` draws them for a text named `name`.

    draw: "conditional" draws alternatives from the model, "uniform" among all tokens, "top" takes likely ones. gap:
    distance of the two sites, by default any. ValueError for a text without such sites.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> mg.rectangles(model, "a b", count=5, seed=1).delta.shape
    (5,)
    """
    from mlmglauber.measures.rectangle.delta import Rectangle, Rows, asks, measure
    from mlmglauber.measures.rectangle.draw import draw_sites, draw_tokens

    check_choice("draw", draw, ("conditional", "uniform", "top"))
    check_tau(tau, zero=False)
    check_count("count", count, 1)
    if gap is not None:
        check_count("gap", gap, 1)
    ids = np.array(token_ids(model, text), dtype=np.int64)
    seed = drawn_seed() if seed is None else seed
    uniforms = Stream(seed, name, 0, "rectangle").uniforms(0, 4 * count).reshape(-1, 4)
    pairs = draw_sites(uniforms[:, :2], np.flatnonzero(model.allowed[ids]), gap)
    rows = Rows(model, model.rows)
    sites: list[int] = np.unique(pairs).tolist()
    known = dict(zip(sites, rows.keep([ids] * len(sites), sites), strict=True))
    tokens = np.empty(pairs.shape, dtype=np.int64)
    for site in sites:
        where = pairs == site
        tokens[where] = draw_tokens(draw, int(ids[site]), uniforms[:, 2:][where].tolist(), model.allowed,
                                    None if draw == "uniform" else known[site])
    all_asks = [ask for i, j, a, b in np.hstack([pairs, tokens]).tolist()
             for ask in asks(ids, Rectangle(i, j, int(ids[i]), int(ids[j]), a, b))]
    return RectangleDeltas(pairs, tokens, measure(rows, all_asks, tau).delta)


def influence(model: TextModel, text: Text, *, tau: float = 1.0, replacements: int = 4, draw: str = "conditional",
              seed: int | None = None, name: str = "0") -> Influence:
    """How much a change at each site moves the conditional at each other site, as `mlm-influence` estimates it.

    replacements: number of other tokens that are tried at each site. The matrix is a lower estimate, since a token
    that was not tried may move more. ValueError for a conditional that is not finite.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> mg.influence(model, "a b", seed=1).matrix.round(3).tolist()
    [[0.0, 0.6], [0.6, 0.0]]
    """
    from mlmglauber.measures.influence.context import check_rows, compare
    from mlmglauber.measures.influence.matrix import alphas
    from mlmglauber.measures.influence.replacements import draw_changes

    ids = np.array(token_ids(model, text), dtype=np.int64)
    check_choice("draw", draw, ("conditional", "uniform", "top"))
    check_tau(tau)
    check_count("replacements", replacements, 1)
    n, seed = len(ids), drawn_seed() if seed is None else seed
    base = model.log_probs(np.repeat(ids[None], n, axis=0), np.arange(n))
    check_rows(base)
    uniforms = Stream(seed, name, 0, "replacement").uniforms(0, n * replacements).reshape(n, replacements)
    changes = draw_changes(draw, base, ids, model.allowed, uniforms, tau)
    matrix = compare(model, ids, np.arange(n), base, changes, [tau]).matrix(0)
    return Influence(matrix, *alphas(matrix))


def exact(model: TextModel, text: Text, *, words: Sequence[str], sites: Sequence[int] | None = None, tau: float = 1.0,
          eps: float = 0.25, max_states: int = 20_000) -> "Exact":
    """The chain over all states that some words make at some sites, solved without sampling.

    The states are all len(words) ** len(sites) ones; conditionals are renormalised over the words. Returns the
    stationary law, mixing times to eps, the spectral gap, influences, entropy production and more (see Exact).
    ValueError for more than max_states states and for a word that is not one token of the model.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> mg.exact(model, "a b", words=["a", "b"]).law.round(3).tolist()
    [0.4, 0.1, 0.1, 0.4]
    """
    from mlmglauber.measures.exact.finite_chain import FiniteChain, attractors
    from mlmglauber.measures.exact.restriction import Restriction
    from mlmglauber.measures.exact.solve import rectangles as all_rectangles
    from mlmglauber.measures.exact.solve import solve
    from mlmglauber.models.restricted import tokens_of

    ids = np.array(token_ids(model, text), dtype=np.int64)
    check_tau(tau)
    if not 0 < eps < 1:
        raise ValueError(f"eps is {eps}; a distance of total variation is between 0 and 1")
    chosen = list(range(len(ids))) if sites is None else sorted(sites)
    check_sites("sites", chosen, len(ids))
    space = Restriction(ids, chosen, [tokens_of(model, check_words("words", words), "words")] * len(chosen))
    if space.states > max_states:
        raise ValueError(f"{space.states} states, max_states is {max_states}")
    base = space.log_probs(model, model.rows)
    warm = FiniteChain(space.shape, base, 1.0)
    return solve(FiniteChain(space.shape, base, tau), attractors(warm), all_rectangles(space.shape, base), eps,
                 space.place(ids.tolist()))


def traps(states: Iterable[State], *, radius: int = 1, min_steps: int = 100) -> "list[tuple[int, Trap]]":
    """The traps of chains: stretches in which a chain stays within `radius` changed tokens of one state.

    states: of `sample(..., every=1)` or `every=None`, in the order of their steps. min_steps: length of the shortest
    trap. Returns (chain, trap) in the order in which traps end; see Trap for its residence, share and flicker.
    ValueError for states of which some are missing: what a chain did between two of them is not known.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> found = mg.traps(mg.sample(model, "a a", tau=0.2, steps=2000, seed=1), radius=0, min_steps=100)
    >>> {trap.state for _, trap in found} <= {(0, 0), (1, 1)}
    True
    """
    from mlmglauber.measures.traps.tracker import Tracker

    check_count("radius", radius, 0)
    check_count("min_steps", min_steps, 1)
    trackers: dict[int, Tracker] = {}
    last: dict[int, Ids] = {}
    pairs: list[tuple[int, Trap]] = []
    for state in states:
        if state.chain in last and not _follows(state, last[state.chain]):
            raise ValueError(f"chain {state.chain}: states are missing before step {state.step}; give the states of "
                             "every step or of every change")
        last[state.chain] = state.ids
        tracker = trackers.setdefault(state.chain, Tracker(radius, min_steps))
        pairs += [(state.chain, trap) for trap in tracker.see(state.step, tuple(state.ids.tolist()))]
    for chain, tracker in trackers.items():
        pairs += [(chain, trap) for trap in tracker.end()]
    return pairs


def _follows(state: State, before: Ids) -> bool:
    """Whether the last update of a state leads to it from the state before."""
    if state.site is None or state.old is None or len(before) != len(state.ids):
        return False
    expected = state.ids.copy()
    expected[state.site] = state.old
    return np.array_equal(expected, before)


def embed(texts: Sequence[str], *, model: str = "all-MiniLM-L6-v2", **options: Any) -> "Embedded":
    """Embeddings of texts by a sentence-transformers model, as `mlm-embed` makes them.

    options: device, revision, rows, normalize, prompt, prompt_name, dims, trust_remote_code, allow_pickle. Identical
    texts are embedded once. Returns vectors (T, d) float32, tokens (T,) and truncated (T,), True for a text longer than
    the model takes. ModelError for a model that cannot be opened, ValueError for one text in the place of a list.
    """
    if isinstance(texts, str):
        raise ValueError("texts is one text; give a list of texts")
    from mlmglauber.models.embedder import Embedder

    return Embedder.open(model, **options).encode(list(texts))


def drift(embeddings: NDArray[Any], reference: NDArray[Any] | None = None) -> Values:
    """1 - cosine similarity of each embedding to a reference, by default the first one.

    embeddings: (T, d). reference: (d,). Returns (T,), NaN where an embedding is zero or not finite. As in the commands,
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
    start = vectors[0] if reference is None else np.asarray(reference, dtype=np.float32)
    if start.shape != vectors.shape[1:]:
        raise ValueError(f"the reference has the shape {start.shape}, an embedding {vectors.shape[1:]}")
    known = Reference(start)
    return np.array([np.nan if (value := known.drift(vector)[0]) is None else value for vector in vectors])
