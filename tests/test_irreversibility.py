"""Entropy production against its exact value, from arrays and from chains of the command."""

import numpy as np
import orjson
import pytest
from oracles import TABLE_A, TABLE_B, site_kernels, stationary

from mlmglauber.measures.irreversibility import of_chain, of_group
from mlmglauber.models.conditionals import TableConditional


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
    """Eight chains each, their 95 % interval widened to 99.99 %: one seed in ten thousand fails; this one is fixed."""
    (sh.folder / "m.json").write_bytes(orjson.dumps(model))
    sample = "echo 'a a' | mlm-sample -m m.json --steps 4000 --chains 8 --seed 5"
    done = sh(f"{sample} --on-change | mlm-rect --path --summary")
    assert (done.status, done.err) == (0, "")
    *chains, group = done.records
    assert (len(chains), group["over"], group["chains"], group["interval"]) == (8, "group", 8, "chains")
    half = (group["production_high"] - group["production_low"]) / 2
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
    """400 steps in 20 batches of 20: batch means that are known."""
    steps = np.arange(1, 401, 20)
    gains = np.where(np.arange(20) % 2, 2.0, 0.0)
    found = of_chain(steps, gains, 400, 0)
    half = 2.093024 * np.std(gains / 20, ddof=1) / np.sqrt(20)
    assert (found.mean, found.low, found.high) == pytest.approx((0.05, 0.05 - half, 0.05 + half), abs=1e-6)


def test_chains_in_different_traps_have_a_wide_interval():
    quiet, busy = (of_chain(np.arange(1, 401), np.full(400, gain), 400, 0) for gain in (0.0, 1.0))
    assert quiet.high - quiet.low == busy.high - busy.low == 0
    both = of_group([quiet, busy])
    assert both.low < 0
    assert both.high > 1
    assert of_group([quiet]) == quiet


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
