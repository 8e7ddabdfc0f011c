"""Rectangles against tables whose deltas are known exactly, real conditionals by hand, and the causal control."""

from itertools import combinations, product

import families
import numpy as np
import pytest
from oracles import TABLE_A, TABLE_B

from mlmglauber.commands.rect.summary import delta_fields
from mlmglauber.dynamics.glauber import temper
from mlmglauber.measures.rectangle.delta import (
    EPSILON,
    BlockRectangle,
    JointRows,
    Rectangle,
    Rows,
    asks,
    has_other_way,
    measure,
    noise,
    quarters,
    rounding,
)
from mlmglauber.measures.rectangle.draw import draw_sites, draw_tokens
from mlmglauber.measures.rectangle.summary import MAX_NOISE, NOISE_FACTOR, Deltas
from mlmglauber.models.causal_lm import CausalLM
from mlmglauber.models.conditionals import TableConditional
from mlmglauber.models.masked_lm import MaskedLM


def deltas(conditional, ids, rectangles, tau=1.0, again=False, rows=64):
    asked = [ask for rectangle in rectangles for ask in asks(np.array(ids), rectangle)]
    return measure(Rows(conditional, rows), asked, tau, again).delta


def all_of(vocab):
    """Every rectangle a < a', b < b' of two sites, and its base state."""
    for (a, to_a), (b, to_b) in product(combinations(range(vocab), 2), repeat=2):
        yield [a, b], Rectangle(0, 1, a, b, to_a, to_b)


def test_table_a():
    table = TableConditional(TABLE_A)
    found = np.array([deltas(table, ids, [rectangle])[0] for ids, rectangle in all_of(3)])
    assert found[0] == pytest.approx(0.603535, abs=1e-6)
    assert np.abs(found).mean() == pytest.approx(1.527756, abs=1e-6)
    assert np.abs(found).max() == pytest.approx(3.360375, abs=1e-6)


def test_table_b_by_hand():
    by_hand = (np.log(0.2 / 0.8) + np.log(0.5 / 0.5)) - (np.log(0.4 / 0.6) + np.log(0.7 / 0.3))
    found = deltas(TableConditional(TABLE_B), [0, 0], [Rectangle(0, 1, 0, 0, 1, 1)])[0]
    assert found == pytest.approx(by_hand, abs=1e-9)
    assert abs(found) == pytest.approx(1.828127, abs=1e-6)


def test_a_joint_law_has_no_delta():
    joint = np.random.default_rng(0).dirichlet(np.ones(27)).reshape(3, 3, 3)
    table = TableConditional.from_joint(joint)
    for ids, (_, _, a, b, to_a, to_b) in all_of(3):
        for i, j in ((0, 1), (0, 2), (2, 1)):
            state = [1, 1, 1]
            state[i], state[j] = ids
            assert abs(deltas(table, state, [Rectangle(i, j, a, b, to_a, to_b)])[0]) < 1e-12


@pytest.mark.parametrize("tau", [0.25, 2.0])
def test_temperature_scales_exactly_and_the_log_probabilities_are_tempered(tau):
    table, ids = TableConditional(TABLE_A), np.array([0, 2])
    asked = asks(ids, Rectangle(0, 1, 0, 2, 1, 0))
    logp, scaled, size = measure(Rows(table, 64), asked, tau)
    plain = measure(Rows(table, 64), asked)
    assert scaled[0] == plain.delta[0] / tau
    assert size[0] == pytest.approx(np.abs(plain.logp).sum() / tau)
    for k, ask in enumerate(asked):
        row = temper(table.log_probs(ask.ids[None], np.array([ask.site])), np.array([tau]))[0]
        assert logp[0, k] == pytest.approx(row[list(ask.tokens)], abs=1e-12)


def test_rows_are_shared_and_batches_change_nothing():
    table = TableConditional(TABLE_A)
    rectangles = [Rectangle(0, 1, 0, 0, to_a, to_b) for to_a in (1, 2) for to_b in (1, 2)]
    rows = Rows(table, 64)
    asked = [ask for rectangle in rectangles for ask in asks(np.array([0, 0]), rectangle)]
    found = measure(rows, asked).delta
    assert rows.computed == 2 + 2 + 2  # both base rows once, then one for each alternative at either site
    assert (deltas(table, [0, 0], rectangles, rows=1) == found).all()


def test_the_double_centred_residual_of_arnold_and_press(tmp_path):
    """On the tokens of two sites of a random model: all deltas are 0 exactly when log p_i - log p_j is additive."""
    lm = MaskedLM.open(str(families.save("bert", tmp_path)[0]))
    tokens = np.flatnonzero(lm.allowed)[[5, 50, 100, 180]]
    context = np.flatnonzero(lm.allowed)[[7, 8, 9, 10, 11]]
    i, j, size = 1, 3, len(tokens)
    ratio = np.empty((size, size))
    for a, b in product(range(size), repeat=2):
        ids = context.copy()
        ids[i], ids[j] = tokens[a], tokens[b]
        rows = lm.log_probs(np.array([ids, ids]), np.array([i, j]))
        ratio[a, b] = rows[0, ids[i]] - rows[1, ids[j]]
    for (a, to_a), (b, to_b) in product(combinations(range(size), 2), repeat=2):
        ids = context.copy()
        ids[i], ids[j] = tokens[a], tokens[b]
        found = deltas(lm, ids, [Rectangle(i, j, *tokens[[a, b, to_a, to_b]].tolist())])[0]
        # log p_i(a|b) - log p_j(b|a) alternates over the corners of the rectangle
        corners = ratio[to_a, b] + ratio[a, to_b] - ratio[a, b] - ratio[to_a, to_b]
        assert found == pytest.approx(corners, abs=1e-5)
    residual = ratio - ratio.mean(0) - ratio.mean(1)[:, None] + ratio.mean()
    assert np.abs(residual).max() > 1e-3  # this model is no joint law, and both ways of asking say so


def test_noise_is_another_way_through_the_model(tmp_path, monkeypatch):
    lm = MaskedLM.open(str(families.save("bert", tmp_path)[0]))
    generator = np.random.default_rng(0)
    ids = generator.choice(np.flatnonzero(lm.allowed), 9)
    rectangles = [Rectangle(2, 5, int(ids[2]), int(ids[5]), *generator.choice(np.flatnonzero(lm.allowed), 2).tolist())
                  for _ in range(30)]
    logits, seen = lm._logits, []

    def watched(ids, sites, lengths, width, level):
        seen.append((width, sites.tolist()))
        return logits(ids, sites, lengths, width, level)

    monkeypatch.setattr(lm, "_logits", watched)
    first, second = deltas(lm, ids, rectangles), deltas(lm, ids, rectangles, again=True)
    assert [width for width, _ in seen] == [16, 24]
    assert seen[0][1] == seen[1][1][::-1]
    assert np.abs(first).min() > 1e-4
    assert np.abs(first - second).max() < 1e-4


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    return CausalLM.open(str(families.save_causal(tmp_path_factory.mktemp("causal"))))


def test_the_joint_of_a_causal_model(causal):
    """Against the chain rule written out, with the beginning of the sequence before the first token."""
    torch = causal._torch
    states = np.array([[30, 40, 50, 60], [31, 41, 51, -1]])
    found = causal.joint(states)
    for state, value in zip(states, found, strict=True):
        ids = [*causal.prefix, *state[state >= 0].tolist()]
        with torch.no_grad():
            rows = torch.log_softmax(causal.model(torch.tensor([ids])).logits[0].double(), dim=1)
        assert value == pytest.approx(sum(rows[k - 1, ids[k]].item() for k in range(1, len(ids))), abs=1e-4)
    assert len(causal.prefix) == 1
    assert causal.describe()["bos"] == causal.prefix
    assert np.abs(causal.joint(states, again=True) - found).max() < 1e-4
    left = causal.left_log_probs(states[:1], np.array([0]))[0]
    assert np.exp(left[causal.allowed]).sum() == pytest.approx(1, abs=1e-5)
    assert (left[~causal.allowed] == -np.inf).all()


def control_asks(tokens, count=40, sites=12, seed=0):
    generator = np.random.default_rng(seed)
    asked = []
    for _ in range(count):
        ids = generator.choice(tokens, sites)
        i, j = sorted(generator.choice(sites, 2, replace=False).tolist())
        asked += asks(ids, Rectangle(i, j, int(ids[i]), int(ids[j]), *generator.choice(tokens, 2).tolist()))
    return asked


def verdict(law, asked, dtype="float32"):
    """What --summary says of a model that gives a joint."""
    first, second = (measure(JointRows(law), asked, again=again) for again in (False, True))
    count = len(first.delta)
    return first, noise(first, second), delta_fields(Deltas(
        np.abs(first.delta), noise(first, second), rounding(first.size, dtype), np.ones(count, np.int64),
        [str(k) for k in range(count)]))


def test_the_causal_control_is_a_floor(causal):
    first, moved, found = verdict(causal, control_asks(np.flatnonzero(causal.allowed)))
    assert 0 < np.abs(first.delta).max() < 1e-3  # a floor that is measured, not zero by algebra
    assert np.exp(first.logp).sum(axis=2) == pytest.approx(1)
    assert (found["above_noise"], found["noise_count"]) == (0, 40)
    ratio = moved[first.delta != 0] / np.abs(first.delta[first.delta != 0])
    assert ratio.max() > 1.5 * ratio.min()  # noise is no multiple of |delta|


class Exact:
    """A joint law of numbers: a fixed score for every state, plus what goes wrong."""

    def __init__(self, wrong):
        self.wrong, self.calls = wrong, 0

    def joint(self, ids, way=0, again=False):
        self.calls += 1
        scores = np.sin(ids @ np.arange(1.0, ids.shape[1] + 1)) * 5 - 20
        return scores + self.wrong(ids, way, np.random.default_rng(self.calls), np.arange(len(ids)))


@pytest.mark.parametrize("size", [10.0, 0.1, 0.001])
def test_a_law_with_errors_is_found_out(size):
    """The control fails where it should: errors of each kind, from those of a random-number law down to 0.001 nats."""
    asked = control_asks(np.arange(50))
    right = verdict(Exact(lambda ids, way, generator, rows: generator.normal(0, 1e-7, len(ids))), asked)[2]
    assert right["above_noise"] == 0
    anew = verdict(Exact(lambda ids, way, generator, rows: generator.normal(0, size, len(ids))), asked)[2]
    assert anew["above_noise"] is None  # other numbers at each call are no rounding
    assert "does not give the same numbers twice" in anew["noise_reason"]
    by_way = verdict(Exact(lambda ids, way, generator, rows: size * np.cos(ids.sum(axis=1)) * (way == 2)), asked)[2]
    assert by_way["above_noise"] > 0.9
    by_row = verdict(Exact(lambda ids, way, generator, rows: size * (rows % 3 == 0)), asked)[2]
    assert by_row["above_noise"] > 0.5
    seldom = verdict(Exact(lambda ids, way, generator, rows: size * (generator.random(len(ids)) < 0.001)),
                     control_asks(np.arange(50), 1000))[2]
    assert 0 < seldom["above_noise"] < 0.1


def test_a_corner_is_scored_for_each_conditional_it_belongs_to():
    seen = []

    class Law(Exact):
        def joint(self, ids, way=0, again=False):
            seen.append((way, again, len(ids)))
            return super().joint(ids, way, again)

    asked = control_asks(np.arange(50), 7)
    verdict(Law(lambda *_: 0), asked)
    assert seen == [(way, again, 14) for again in (False, True) for way in range(4)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_no_joint_law_is_refuted_in_any_precision(dtype):
    """Random joint laws of 2 to 4 sites, flat and spiky: each |delta| stays below its own rounding."""
    generator = np.random.default_rng(5)
    most = 0.0
    for _ in range(60):
        sites, vocab = int(generator.integers(2, 5)), int(generator.integers(2, 6))
        joint = generator.dirichlet(np.full(vocab**sites, generator.choice([0.3, 1, 30]))) + 1e-9
        table = TableConditional.from_joint(joint.reshape((vocab,) * sites))
        asked = []
        for _ in range(40):
            ids = generator.integers(0, vocab, sites)
            i, j = generator.choice(sites, 2, replace=False).tolist()
            others = [int((ids[site] + generator.integers(1, vocab)) % vocab) for site in (i, j)]
            asked += asks(ids, Rectangle(i, j, int(ids[i]), int(ids[j]), *others))

        class Rounded(TableConditional):
            def log_probs(self, ids, sites):
                return super().log_probs(ids, sites).astype(dtype).astype(np.float64)

        found = measure(Rows(Rounded(table.tables), 64), asked, float(generator.choice([0.2, 1, 3])))
        most = max(most, float((np.abs(found.delta) / rounding(found.size, dtype)).max()))
    assert 0.02 < most < 0.5
    assert rounding(np.array([1.0]), dtype)[0] == 4 * np.finfo(dtype).eps
    assert not has_other_way(table)
    with pytest.raises(ValueError, match="one way only"):
        measure(Rows(table, 64), asked, again=True)
    assert set(EPSILON) == {"float64", "float32", "float16", "bfloat16"}


def test_noise_is_a_sample_and_the_floor_a_distribution():
    """Deltas that err as their noise does: next to none is above the floor, whatever the number of rectangles.

    4,000 groups each; the rate that is asserted is six times what was measured.
    """
    generator = np.random.default_rng(0)
    for count, rate in ((1, 0.012), (5, 0.002), (40, 0.0002)):
        errors = generator.normal(0, 1, (2, 4000, count, 4))
        signs = np.array([1, -1, -1, 1])
        sizes, moved = np.abs(errors[0] @ signs), np.sqrt(((errors[1] - errors[0]) ** 2).sum(axis=-1))
        floor = NOISE_FACTOR * np.quantile(moved, 0.95, axis=1, keepdims=True)
        assert (sizes > floor).mean() < rate
    found = delta_fields(Deltas(np.array([1.0, 2.0]), *np.full((2, 2), np.nan), np.ones(2, np.int64), "ab"))
    assert (found["noise_floor"], found["above_noise"], found["noise_reason"]) == (None, None, "not measured")
    own = delta_fields(Deltas(np.ones(2), np.array([0.1, 0.1]), np.array([0.2, 2.0]), np.ones(2, np.int64), "ab"))
    assert own["above_noise"] == 0.5  # the floor of the second is its own rounding
    assert MAX_NOISE == 50


def grid_sum(conditional, ids, block):
    """The deltas of the elementary rectangles that a rectangle of blocks is made of, added up."""
    total, state = 0.0, np.array(ids)
    for k, i in enumerate(block.i):
        for m, j in enumerate(block.j):
            state = np.array(ids)
            state[list(block.i[:k])] = block.to_a[:k]
            state[list(block.j[:m])] = block.to_b[:m]
            if block.a[k] != block.to_a[k] and block.b[m] != block.to_b[m]:
                rectangle = Rectangle(i, j, block.a[k], block.b[m], block.to_a[k], block.to_b[m])
                total += measure(Rows(conditional, 64), asks(state, rectangle)).delta[0]
    return total


def test_blocks_are_the_sum_of_their_rectangles_and_zero_for_a_joint():
    generator = np.random.default_rng(1)
    joint = generator.dirichlet(np.ones(3**5)).reshape((3,) * 5)
    tables = [generator.dirichlet(np.ones(3), (3,) * 4) for _ in range(5)]
    for i, j in (((0, 1), (3,)), ((0,), (2, 3, 4)), ((1, 2), (3, 4)), ((3, 4), (0,)), ((0,), (4,))):
        for _ in range(5):
            ids = generator.integers(0, 3, 5)
            to_a, to_b = (tuple(generator.integers(0, 3, len(block)).tolist()) for block in (i, j))
            block = BlockRectangle(i, j, tuple(ids[list(i)].tolist()), tuple(ids[list(j)].tolist()), to_a, to_b)
            asked, counts = asks(ids, block), quarters(block)
            assert sum(counts) == len(asked)
            none = measure(Rows(TableConditional.from_joint(joint), 64), asked, counts=counts)
            assert abs(none.delta[0]) < 1e-12
            found = measure(Rows(TableConditional(tables), 64), asked, 0.5, counts=counts)
            assert found.delta[0] == pytest.approx(2 * grid_sum(TableConditional(tables), ids, block), abs=1e-12)
            if len(i) == len(j) == 1:
                single = Rectangle(i[0], j[0], *(int(part[0]) for part in block[2:]))
                assert found.delta[0] == measure(Rows(TableConditional(tables), 64), asks(ids, single), 0.5).delta[0]
    table = TableConditional(tables)
    blocks = [BlockRectangle((0, 1), (3,), (0, 0), (0,), (1, 2), (1,)), BlockRectangle((4,), (1, 2), (0,), (0, 0), (2,),
                                                                                   (1, 1))]
    asked = [ask for block in blocks for ask in asks(np.zeros(5, np.int64), block)]
    together = measure(Rows(table, 64), asked, counts=[count for block in blocks for count in quarters(block)])
    alone = [measure(Rows(table, 64), asks(np.zeros(5, np.int64), block), counts=quarters(block)) for block in blocks]
    for k, one in enumerate(alone):
        assert (together.delta[k], together.size[k]) == (one.delta[0], pytest.approx(one.size[0]))
        assert together.logp[k] == pytest.approx(one.logp[0])


def test_a_causal_block_is_zero_too(causal):
    tokens = np.flatnonzero(causal.allowed)
    generator = np.random.default_rng(2)
    asked, counts = [], []
    for _ in range(10):
        ids, new = generator.choice(tokens, 9), generator.choice(tokens, 5).tolist()
        block = BlockRectangle((1, 2, 3), (6, 7), tuple(ids[1:4].tolist()), tuple(ids[6:8].tolist()), tuple(new[:3]),
                               tuple(new[3:]))
        asked += asks(ids, block)
        counts += quarters(block)
    found = measure(JointRows(causal), asked, counts=counts)
    assert (np.abs(found.delta) < rounding(found.size, "float32")).all()


def test_sites_and_tokens_are_drawn_evenly():
    """Chi-square at 1e-4 for each of three draws: a false alarm in three thousand seeds; the seed is fixed."""
    from scipy.stats import chisquare

    uniforms = np.random.default_rng(3).random((30_000, 2))
    pairs = draw_sites(uniforms, np.array([0, 2, 3, 7]))
    assert chisquare(np.unique(pairs, axis=0, return_counts=True)[1]).pvalue > 1e-4
    assert len(np.unique(pairs, axis=0)) == 6
    assert (np.diff(draw_sites(uniforms, np.array([0, 2, 3, 7, 8]), gap=5), axis=1) == 5).all()
    row = np.log(np.array([0.5, 0.2, 0.3]))
    allowed = np.ones(3, bool)
    counts = np.bincount(draw_tokens("conditional", 0, uniforms[:, 0].tolist(), allowed, row), minlength=3)
    assert counts[0] == 0
    assert chisquare(counts[1:], np.array([0.4, 0.6]) * len(uniforms)).pvalue > 1e-4
    counts = np.bincount(draw_tokens("uniform", 1, uniforms[:, 0].tolist(), allowed, None), minlength=3)
    assert counts[1] == 0
    assert chisquare(counts[[0, 2]]).pvalue > 1e-4
    assert draw_tokens("top", 0, [0.1, 0.9], allowed, row) == [2, 2]
    with pytest.raises(ValueError, match="two sites"):
        draw_sites(uniforms, np.array([1]))
    with pytest.raises(ValueError, match="9 apart"):
        draw_sites(uniforms, np.arange(5), gap=9)
    with pytest.raises(ValueError, match="probability above 0"):
        draw_tokens("conditional", 0, [0.5], allowed, np.array([0.0, -np.inf, -np.inf]))


def test_the_interval_is_over_texts():
    """Ten rectangles of one text say no more than the text does: the interval is that of four numbers, not of forty."""
    sizes = np.repeat([0.0, 1.0, 2.0, 3.0], 10)
    found = delta_fields(Deltas(sizes, np.full(40, 0.5), np.full(40, 0.1), np.ones(40, np.int64),
                             [str(k // 10) for k in range(40)]))
    assert (found["mean"], found["median"], found["rms"]) == (1.5, 1.5, pytest.approx(np.sqrt(3.5)))
    assert (found["texts"], found["count"], found["noise_floor"], found["above_noise"]) == (4, 40, 1.5, 0.5)
    assert found["mean_low"] <= 0.75
    assert found["mean_high"] >= 2.25
    one = delta_fields(Deltas(sizes[:10], np.full(10, np.nan), np.full(10, 0.1), np.ones(10, np.int64), ["0"] * 10))
    assert (one["mean_low"], one["mean_reason"]) == (None, "an interval needs 4 texts, there are 1")
    assert (one["noise_floor"], one["above_noise"], one["noise_reason"]) == (
        0.1, 0, "not measured; the floor is rounding alone")
