"""Measures in Python: rectangles, influences, exact small chains, traps and their margins."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlmglauber.api.chains import State, Text, Trajectory, token_ids
from mlmglauber.api.checks import check_choice, check_count, check_sites, check_tau, check_words, python_errors
from mlmglauber.dynamics.randomness import Stream, drawn_seed
from mlmglauber.models.conditionals import Ids, TextModel

if TYPE_CHECKING:
    from mlmglauber.measures.exact.solve import Exact
    from mlmglauber.measures.traps.margins import Margins
    from mlmglauber.measures.traps.tracker import Trap

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


@python_errors()
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
    if any(not isinstance(change, tuple | list) or len(change) != 2 for change in (first, second)):
        raise ValueError("a change is (site, word); give two of them")
    i, j = first[0], second[0]
    check_sites("sites", (i, j), len(ids))
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


@python_errors()
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
    from mlmglauber.measures.rectangle.delta import Rows, asks, measure
    from mlmglauber.measures.rectangle.draw import draw_rectangles, draw_sites

    check_choice("draw", draw, ("conditional", "uniform", "top"))
    check_tau(tau, zero=False)
    check_count("count", count, 1)
    if gap is not None:
        check_count("gap", gap, 1)
    ids = np.array(token_ids(model, text), dtype=np.int64)
    seed = drawn_seed() if seed is None else seed
    uniforms = Stream(seed, str(name), 0, "rectangle").uniforms(0, 4 * count).reshape(-1, 4)
    pairs = draw_sites(uniforms[:, :2], np.flatnonzero(model.allowed[ids]), gap)
    rows = Rows(model, model.rows)
    sites: list[int] = [] if draw == "uniform" else np.unique(pairs).tolist()
    proposals = dict(zip(sites, rows.keep([ids] * len(sites), sites), strict=True))
    drawn = draw_rectangles(draw, ids, pairs, uniforms[:, 2:], model.allowed, proposals)
    asked = [ask for rectangle in drawn for ask in asks(ids, rectangle)]
    tokens = np.array([(rectangle.to_a, rectangle.to_b) for rectangle in drawn], dtype=np.int64)
    return RectangleDeltas(pairs, tokens, measure(rows, asked, tau).delta)


@python_errors()
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
    from mlmglauber.measures.traps.margins import site_rows

    ids = np.array(token_ids(model, text), dtype=np.int64)
    check_choice("draw", draw, ("conditional", "uniform", "top"))
    check_tau(tau)
    check_count("replacements", replacements, 1)
    if model.truncation is not None:
        raise ValueError("the model is truncated, but influences are those of whole conditionals; give the whole model")
    n, seed = len(ids), drawn_seed() if seed is None else seed
    sites = np.arange(n)
    base = site_rows(model, ids, sites)
    check_rows(base)
    uniforms = Stream(seed, str(name), 0, "replacement").uniforms(0, n * replacements).reshape(n, replacements)
    changes = draw_changes(draw, base, ids, model.allowed, uniforms, tau)
    matrix = compare(model, ids, sites, base, changes, [tau]).matrix(0)
    return Influence(matrix, *alphas(matrix))


@python_errors()
def exact(model: TextModel, text: Text, *, words: Sequence[str], sites: Sequence[int] | None = None, tau: float = 1.0,
          eps: float = 0.25, steps: Sequence[int] = (), max_states: int = 20_000) -> "Exact":
    """The chain over all states that some words make at some sites, solved without sampling.

    The states are all len(words) ** len(sites) ones; conditionals are renormalised over the words. Returns the
    stationary law, mixing times to eps, the second eigenvalue, influences, entropy production and more (see Exact).
    steps: `distances` of the result holds the total variation to the stationary law after these numbers of steps from
    the text.
    ValueError for more than max_states states and for a word that is not one token of the model.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> mg.exact(model, "a b", words=["a", "b"]).law.round(3).tolist()
    [0.4, 0.1, 0.1, 0.4]
    """
    from mlmglauber.measures.exact.restriction import Restriction
    from mlmglauber.measures.exact.solve import solve_all
    from mlmglauber.models.restricted import tokens_of

    ids = np.array(token_ids(model, text), dtype=np.int64)
    check_tau(tau)
    if not 0 < eps < 1:
        raise ValueError(f"eps is {eps}; a distance of total variation is between 0 and 1")
    for step in steps:
        check_count("steps", step, 0)
    chosen = list(range(len(ids))) if sites is None else sites
    check_sites("sites", chosen, len(ids))
    if not len(chosen):
        raise ValueError("sites is empty, so no token can change; give a site")
    space = Restriction(ids, sorted(chosen), [tokens_of(model, check_words("words", words), "words")] * len(chosen))
    if space.states > max_states:
        raise ValueError(f"{space.states} states, max_states is {max_states}; give fewer words or sites")
    start = space.place(ids.tolist())
    if len(steps) and start is None:
        raise ValueError("steps need a text that is one of the states; add its tokens to words")
    found, = solve_all(space.shape, space.log_probs(model, model.rows), [tau], eps, start, steps,
                       model.truncation)
    return found


@python_errors()
def margins(model: TextModel, text: Text, *, tau: float = 1.0) -> "Margins":
    """How far each token of a text is above its rivals, in nats, and how long a chain stays in the text.

    With l_i = log p(. | x_-i), the margin at site i is l_i(x_i) - max_{v != x_i} l_i(v); the text is a perfect trap
    where all are above 0. `escape` is the exact probability that one step at tau leaves the text, `residence` its
    inverse, the mean number of steps of a stay (see Margins). ValueError for a conditional that is not finite.

    >>> import mlmglauber as mg
    >>> model = mg.open_model(mg.TableConditional.from_joint([[0.4, 0.1], [0.1, 0.4]]), tokens=["a", "b"])
    >>> found = mg.margins(model, "a a")
    >>> round(found.margin, 6), round(found.escape, 6)  # log 4, 1 / 5
    (1.386294, 0.2)
    """
    from mlmglauber.measures.traps.margins import decided_rows
    from mlmglauber.measures.traps.margins import margins as margins_of

    ids = np.array(token_ids(model, text), dtype=np.int64)
    check_tau(tau)
    return margins_of(decided_rows(model, ids, np.arange(len(ids))), ids, tau, int(model.allowed.sum()),
                      model.truncation)


@python_errors()
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
    if isinstance(states, Trajectory):
        raise ValueError("the states are arrays, which do not say what changed; give the states that sample yields")
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
