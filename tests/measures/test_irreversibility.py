"""Entropy production against its exact value, from arrays and from chains of the command."""

import numpy as np
import orjson
import pytest
from oracles import TABLE_A, TABLE_B, site_kernels, stationary

from mlmglauber.measures.rectangle.irreversibility import of_chain, of_group
from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process


def exact(table):
    """sum over states and sites of pi(x) (1/n) sum_v p(v) [log p(v) - log p(x_i)]."""
    kernels = site_kernels(table, 1.0)
    law = stationary(kernels.mean(axis=0))
    total = 0.0
    for kernel in kernels:
        present = np.log(np.diag(kernel))
        gain = np.log(np.where(kernel > 0, kernel, 1.0)) - present[:, None]
        total += float((law[:, None] * kernel * gain).sum()) / len(kernels)  # a kernel of 0 weighs nothing
    return total


@pytest.mark.parametrize(("table", "value"), [(TABLE_A, 0.061697), (TABLE_B, 0.045222)])
def test_the_oracles_are_what_the_definition_gives(table, value):
    assert exact(TableConditional(table)) == pytest.approx(value, abs=1e-6)


JOINT = [[0.4, 0.1], [0.2, 0.3]]


@pytest.mark.parametrize(("model", "value"), [
    ({"tokens": ["a", "b", "c"], "tables": TABLE_A}, 0.061697),
    ({"tokens": ["a", "b"], "tables": TABLE_B}, 0.045222),
    ({"tokens": ["a", "b"], "joint": JOINT}, 0.0),
])
def test_chains_of_the_command(sh, model, value):
    """Eight chains each, their 95 % interval widened to 99.99 %: one seed in ten thousand fails; this one is fixed.

    The boundary term, part of the interval, is taken off first.
    """
    (sh.folder / "m.json").write_bytes(orjson.dumps(model))
    sample = "echo 'a a' | mlm-sample -m m.json --steps 4000 --chains 8 --seed 5"
    done = sh(f"{sample} --on-change | mlm-rect --path --summary")
    assert (done.status, done.err) == (0, "")
    *chains, group = done.records
    assert (len(chains), group["over"], group["chains"], group["interval"]) == (8, "group", 8, "chains")
    half = (group["production_high"] - group["production_low"]) / 2 - group["boundary"] / 3200
    assert abs(group["entropy_production"] - value) < half * 7.4 / 2.36  # t of 7 degrees of freedom
    assert half < 0.02
    assert all(chain["interval"] == "batch_means" and chain["steps"] == 3200 for chain in chains)
    if value:
        assert sh(f"{sample} --every 1 | mlm-rect --path --summary").out == done.out  # the same chains, each step told


def test_by_hand():
    steps, gains = np.array([2, 5, 6]), np.array([1.0, -0.5, 0.25])
    assert of_chain(steps, gains, 10, 0).mean == pytest.approx(0.075)
    late = of_chain(steps, gains, 10, 2)  # the update of step 2 is before the burn-in's end
    assert (late.mean, late.steps, late.changes, late.reason) == (pytest.approx(-0.25 / 8), 8, 2, "too_few_steps")
    assert of_chain(np.array([3]), np.array([np.inf]), 200, 0).reason == "zero_probability"
    assert of_chain(np.array([3]), np.array([np.inf]), 200, 3).mean == 0
    frozen = of_chain(np.empty(0, np.int64), np.empty(0), 400, 0)
    assert (frozen.mean, frozen.low, frozen.reason) == (0, None, "frozen")
    with pytest.raises(ValueError, match="leaves none"):
        of_chain(steps, gains, 10, 10)


def test_batch_means_by_hand():
    """400 steps in 20 batches of 20: batch sums that are known, and go to and fro as a boundary term does."""
    steps = np.arange(1, 401, 20)
    gains = np.where(np.arange(20) % 2, 2.0, 0.0)
    found = of_chain(steps, gains, 400, 0)
    boundary = np.sqrt(2 * 19 / 18)  # the product of neighbours' deviations is -1 each time
    half = 2.093024 * np.std(gains / 20, ddof=1) / np.sqrt(20) + boundary / 400
    assert (found.mean, found.low, found.high) == pytest.approx((0.05, 0.05 - half, 0.05 + half), abs=1e-6)
    assert (found.boundary, found.means) == (pytest.approx(boundary), (0.05, 0.05))
    growing = of_chain(steps, np.repeat([0.0, 2.0], 10), 400, 0)
    assert (growing.mean, growing.low, growing.reason) == (0.05, None, "not_stationary")
    assert growing.means == (0, 0.1)
    lively = of_chain(np.sort(np.r_[steps, np.arange(2, 200, 3)]), np.zeros(20 + 66), 400, 0)
    assert (lively.mean, lively.reason) == (0, "not_stationary")  # changes are fewer in the second half


def test_chains_in_different_traps_have_a_wide_interval():
    quiet, busy = (of_chain(np.arange(1, 401), np.full(400, gain), 400, 0) for gain in (0.0, 1.0))
    assert quiet.high - quiet.low == busy.high - busy.low == 0
    both = of_group([quiet, busy])
    assert both.low < 0
    assert both.high > 1
    assert of_group([quiet]) == quiet
    few = of_group([quiet, busy], ["a", "b"])
    assert (few.mean, few.low, few.reason) == (0.5, None, "too_few_texts")
    texts = of_group([quiet, busy] * 4, [text for text in "abcd" for _ in range(2)])
    assert (texts.by, texts.low, texts.high) == ("texts", 0.5, 0.5)  # each text has one of either
    chains = of_group([quiet, busy] * 4, ["a"] * 8)
    assert (chains.by, chains.high > 0.9) == ("chains", True)


def test_the_boundary_term_of_a_group_by_hand():
    """Chains of 100 steps whose halves gain (1, -1), (-1, 1) nats: all of it is boundary."""
    steps = np.array([10, 60])
    swing = [of_chain(steps, np.array([sign, -sign]), 100, 0) for sign in (1.0, -1.0)]
    found = of_group(swing * 2)
    boundary = np.sqrt(2 * 4 / 3)
    assert (found.mean, found.boundary) == (0, pytest.approx(boundary))
    assert (found.low, found.high) == pytest.approx((-boundary / 100, boundary / 100))
    steady = of_group([of_chain(steps, np.array([size, size]), 100, 0) for size in (1.0, 2.0)])
    assert steady.boundary == 0  # halves that agree have no boundary term


def walk(tables, start, chains, steps, seed):
    """(chains, steps) gains and changes of random-scan chains on tables, all at once."""
    generator = np.random.default_rng(seed)
    states, rows = np.tile(np.array(start), (chains, 1)), np.arange(chains)
    gains = np.zeros((chains, steps))
    sites = generator.integers(0, len(tables), (steps, chains))
    for step in range(steps):
        for site, table in enumerate(tables):
            there = rows[sites[step] == site]
            law = table[tuple(np.delete(states[there], site, axis=1).T)]
            new = np.minimum((generator.random((len(there), 1)) > law.cumsum(axis=1)).sum(axis=1), law.shape[1] - 1)
            row, old = np.arange(len(there)), states[there, site]
            gains[there, step] = np.log(law[row, new]) - np.log(law[row, old])
            states[there, site] = new
    return gains


def groups_of(tables, start, size, steps, count, seed):
    """Productions of `count` groups of `size` chains each, and the same without a boundary term and its test."""
    gains = walk(tables, start, size * count, steps, seed)
    for k in range(count):
        mine = gains[k * size : (k + 1) * size]
        yield (of_group([of_chain(np.flatnonzero(row) + 1, row[row != 0], steps, steps // 5) for row in mine]),
               mine[:, steps // 5 :].mean(axis=1))


def claims(pairs):
    """(share of intervals without 0, the same of plain Student intervals, share that is not stationary)."""
    from scipy.stats import t

    found, plain = zip(*pairs, strict=True)
    halves = [t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means)) for means in plain]
    return (np.mean([one.low is not None and (one.low > 0 or one.high < 0) for one in found]),
            np.mean([abs(means.mean()) > half for means, half in zip(plain, halves, strict=True)]),
            np.mean([one.reason == "not_stationary" for one in found]))


def wells():
    """Tables of an Ising model of eight spins that all interact, in a field."""
    spins = 2 * np.array(list(np.ndindex(*(2,) * 8))) - 1
    moment = spins.sum(axis=1)
    joint = np.exp(0.198 * moment**2 / 2 + 0.18 * moment).reshape((2,) * 8)
    return TableConditional.from_joint(joint / joint.sum()).tables


CASES = [([0] * 8, 128, 200), ([0] * 8, 32, 100), ([0, 1] * 4, 32, 100), ([0] * 8, 8, 400)]
"""The start, the chains of a group and their steps."""


@pytest.mark.parametrize("cases", [pytest.param(CASES[:1], id="one group"),
                                   pytest.param(CASES, id="all groups", marks=pytest.mark.soak)])
def test_a_reversible_chain_on_its_way_shows_no_production(cases):
    """Chains that start in the wrong well of an Ising model take hundreds of steps to leave it.

    Measured: 1 % or fewer of the intervals lie off 0 where a plain one does in up to all. 40 groups each; the asserted
    rates have an error of 1e-4 or less.
    """
    worst = 0
    for start, size, steps in cases:
        off, plain, _ = claims(groups_of(wells(), start, size, steps, 40, seed=steps + size))
        assert off <= 0.15
        worst = max(worst, plain)
    assert worst > 0.9


@pytest.mark.soak
def test_chains_on_their_way_are_told_from_those_that_have_arrived():
    """Long chains are taken for not stationary at the rate of the test, a large group on its way nearly always."""
    off, _, moving = claims(groups_of(wells(), [0, 1] * 4, 8, 2000, 40, seed=9))
    assert off <= 0.15
    assert moving <= 0.15
    assert claims(groups_of(wells(), [0] * 8, 128, 200, 20, seed=3))[2] > 0.7


def test_an_incompatible_chain_still_shows_its_production():
    off, _, moving = claims(groups_of([np.array(table) for table in TABLE_A], [0, 0], 16, 400, 40, seed=1))
    assert off > 0.85
    assert moving <= 0.15


@pytest.mark.parametrize("scan", ["systematic", "permutation"])
def test_other_scans_have_no_entropy_production(sh, tables, scan):
    done = sh(f"echo 'a a' | mlm-sample -m a.json --scan {scan} --on-change --steps 2000 --chains 4 --seed 5 > s; "
              "mlm-rect --path --summary s")
    assert done.status == 0
    assert f"chains of the scan {scan} have no entropy production" in done.err
    assert len(done.records) == 5
    for record in done.records:
        assert (record["entropy_production"], record["production_low"], record["production_reason"]) == (
            None, None, "other_scan")
        assert record["scan"] == scan
    both = sh("echo 'a a' | mlm-sample -m a.json --on-change --steps 2000 --chains 4 --seed 5 > r; "
              "mlm-rect --path --summary s r").records
    groups = [record for record in both if record["over"] == "group"]
    assert {group["scan"]: group["entropy_production"] is None for group in groups} == {scan: True, "random": False}


def test_what_the_run_records_tell_of_chains(sh, tables):
    bare = sh("echo 'a a' | mlm-sample -m a.json --on-change --steps 500 --seed 5 | tail -n +2 | mlm-rect --path")
    assert "no run record came before the states of" in bare.err
    assert (bare.records[0]["model"], bare.records[0]["model_reason"]) == (None, "no run record")
    cold = sh("echo 'a a' | mlm-sample -m a.json --tau 0 --on-change --steps 500 --seed 5 | mlm-rect --path").records[0]
    assert (cold["entropy_production"], cold["production_reason"]) == (None, "zero_temperature")


def test_production_of_a_restricted_chain_is_that_of_its_own_law(sh, tables):
    """Three of four letters may be drawn: the entropy production of the renormalised tables. Ten standard errors."""
    generator = np.random.default_rng(4)
    whole = [generator.dirichlet(np.ones(4), 4) for _ in range(2)]
    (sh.folder / "w.json").write_bytes(orjson.dumps({"tokens": list("abcd"), "tables": [t.tolist() for t in whole]}))
    own = [table[:3, :3] / table[:3, :3].sum(axis=1, keepdims=True) for table in whole]
    chains = "echo 'a a' | mlm-sample -m w.json --on-change --steps 4000 --chains 8 --seed 5"
    found = sh(f"{chains} --allow a,b,c | mlm-rect --path --summary").records[-1]
    half = (found["production_high"] - found["production_low"]) / 2 - found["boundary"] / found["steps"] * 8
    assert found["allow"] == "a,b,c"
    assert abs(found["entropy_production"] - exact(TableConditional(own))) < half * 10 / 2.36
    assert abs(found["entropy_production"] - exact(TableConditional(whole))) > half


def test_a_chain_with_missing_changes_is_told_of_once_and_left_out(sh, tables):
    whole = sh("printf 'a a\\nb b\\n' | mlm-sample -m a.json --on-change --steps 300 --seed 5")
    kept = [line for k, line in enumerate(whole.out.splitlines(keepends=True)) if k != 20]
    done = sh("mlm-rect --path", stdin=b"".join(kept))
    assert done.status == 65
    assert done.err.count("\n") == 1
    assert "is not one update after" in done.err
    assert [record["id"] for record in done.records] == ["1"]
    thin = sh("echo 'a a' | mlm-sample -m a.json --every 7 --steps 300 --seed 5 | mlm-rect --path")
    assert (thin.status, thin.out) == (65, b"")
