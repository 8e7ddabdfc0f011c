"""Rectangles against tables whose deltas are known exactly, real conditionals by hand, and the causal control."""

from itertools import combinations, product

import families
import numpy as np
import pytest
from oracles import TABLE_A, TABLE_B

from mlmglauber.dynamics.glauber import temper
from mlmglauber.measures.rectangle import Rectangle, Rows, asks, from_conditionals, from_joint
from mlmglauber.measures.rectangle_draw import draw_sites, draw_tokens
from mlmglauber.measures.rectangle_summary import Deltas, summarise
from mlmglauber.models.causal_lm import CausalLM
from mlmglauber.models.conditionals import TableConditional
from mlmglauber.models.masked_lm import MaskedLM


def deltas(conditional, ids, rectangles, tau=1.0, again=False, rows=64):
    asked = [ask for rectangle in rectangles for ask in asks(np.array(ids), rectangle)]
    return from_conditionals(Rows(conditional, rows), asked, tau, again)[1]


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
    logp, scaled = from_conditionals(Rows(table, 64), asked, tau)
    assert scaled[0] == from_conditionals(Rows(table, 64), asked)[1][0] / tau
    for k, ask in enumerate(asked):
        row = temper(table.log_probs(ask.ids[None], np.array([ask.site])), np.array([tau]))[0]
        assert logp[0, k] == pytest.approx(row[list(ask.tokens)], abs=1e-12)


def test_rows_are_shared_and_batches_change_nothing():
    table = TableConditional(TABLE_A)
    rectangles = [Rectangle(0, 1, 0, 0, to_a, to_b) for to_a in (1, 2) for to_b in (1, 2)]
    rows = Rows(table, 64)
    asked = [ask for rectangle in rectangles for ask in asks(np.array([0, 0]), rectangle)]
    found = from_conditionals(rows, asked)[1]
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
    forward, seen = lm._forward, []

    def watched(ids, sites, lengths, width):
        seen.append((width, sites.tolist()))
        return forward(ids, sites, lengths, width)

    monkeypatch.setattr(lm, "_forward", watched)
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


def test_the_causal_control_is_a_floor(causal):
    generator = np.random.default_rng(0)
    tokens = np.flatnonzero(causal.allowed)
    asked = []
    for _ in range(40):
        ids = generator.choice(tokens, 12)
        i, j = sorted(generator.choice(12, 2, replace=False).tolist())
        asked += asks(ids, Rectangle(i, j, int(ids[i]), int(ids[j]), *generator.choice(tokens, 2).tolist()))
    logp, found = from_joint(causal, asked)
    assert 0 < np.abs(found).max() < 1e-3  # a floor that is measured, not zero by algebra
    assert np.exp(logp).sum(axis=2) == pytest.approx(1)
    again = from_joint(causal, asked, again=True)[1]
    assert np.abs(again + found).max() > 0 or np.abs(again - found).max() > 0


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
    found = summarise(Deltas(sizes, np.full(40, 0.5), np.ones(40, np.int64), [str(k // 10) for k in range(40)]))
    assert (found["mean"], found["median"], found["rms"]) == (1.5, 1.5, pytest.approx(np.sqrt(3.5)))
    assert (found["texts"], found["count"], found["noise_floor"], found["above_noise"]) == (4, 40, 0.5, 0.75)
    assert found["mean_low"] <= 0.75
    assert found["mean_high"] >= 2.25
    one = summarise(Deltas(sizes[:10], np.full(10, np.nan), np.ones(10, np.int64), ["0"] * 10))
    assert (one["mean_low"], one["mean_reason"]) == (None, "an interval needs 4 texts, there are 1")
    assert (one["noise_floor"], one["above_noise"], one["noise_reason"]) == (None, None, "not measured")
