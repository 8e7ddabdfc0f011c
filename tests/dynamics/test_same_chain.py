"""The same chain everywhere: tiny-en, whatever the batch, the threads, the engine, the number format or the processor.

The golden hashes are of the ids of every state. They hold on every machine: a chain is defined by float64 conditionals.
"""

import hashlib
import os
import subprocess
import sys

import numpy as np
import orjson
import pytest
import torch
from conftest import ROOT

from mlmglauber.dynamics.chain import Chain, OutputSchedule, in_step_order
from mlmglauber.dynamics.draws import draw
from mlmglauber.dynamics.engine import Engine
from mlmglauber.dynamics.plain import advance
from mlmglauber.dynamics.precision import Precision
from mlmglauber.models.blocks import block_rows
from mlmglauber.models.conditionals import Draws
from mlmglauber.models.opening import open_model
from mlmglauber.stream.errors import MlmWarning

PASSAGES = ROOT / "examples" / "passages.jsonl"
TAUS = (0.3, 1.0, 2.0)
GOLDEN = {(4, 30): "9cce56088c713251"}


@pytest.fixture(scope="module")
def lm():
    return open_model("tiny-en")


def starts_of(lm, count, n=12):
    texts = [lm.encode(orjson.loads(line)["text"]) for line in PASSAGES.read_bytes().splitlines()]
    return [ids[: n + k % 3] for k, ids in enumerate(texts) if len(ids) >= n + 2][:count]


def trajectory(lm, move, count=4, steps=30):
    """The hash of all states of `count` chains at each temperature."""
    schedule = OutputSchedule(steps, every=0)
    chains = [Chain(ids, tau=tau, seed=7, record=str(k), number=0, schedule=schedule)
              for tau in TAUS for k, ids in enumerate(starts_of(lm, count))]
    while any(chain.step < steps for chain in chains):
        move(chains)
    digest = hashlib.sha256()
    for k, event in in_step_order(chains):
        digest.update(np.array([k, event.step, *event.ids]).tobytes())
    return digest.hexdigest()[:16]


def fast(lm, rows=64, memory=256 << 20, **more):
    return trajectory(lm, Engine(lm, rows, memory).advance, **more)


def test_the_golden_trajectory_of_the_plain_engine_in_float64():
    """Every draw from float64 itself: the definition."""
    lm = open_model("tiny-en", dtype="float64")
    assert lm.levels == 1
    precision = Precision(lm)
    assert trajectory(lm, lambda chains: advance(precision, chains)) == GOLDEN[4, 30]


@pytest.mark.parametrize(("rows", "memory", "threads"), [
    (64, 256 << 20, 1), (7, 256 << 20, 2), pytest.param(1, 0, 1, marks=pytest.mark.soak)])
def test_any_batch_any_memory_and_any_number_of_threads(lm, rows, memory, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert fast(lm, rows, memory) == GOLDEN[4, 30]
    finally:
        torch.set_num_threads(before)


def test_the_plain_engine_in_float32(lm):
    precision = Precision(lm)
    assert trajectory(lm, lambda chains: advance(precision, chains, rows=16)) == GOLDEN[4, 30]


@pytest.mark.soak
def test_bfloat16_with_exact_has_the_chains_of_float64_and_alone_its_own():
    assert fast(open_model("tiny-en", dtype="bfloat16", exact=True)) == GOLDEN[4, 30]
    assert fast(open_model("tiny-en", dtype="bfloat16")) != GOLDEN[4, 30]


@pytest.mark.parametrize("variables", [
    {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    pytest.param({"MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "OMP_NUM_THREADS": "2"}, marks=pytest.mark.soak),
    pytest.param({"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}, marks=pytest.mark.soak)])
def test_other_code_paths_of_the_processor(variables):
    code = ("import sys; sys.path[:0] = ['tests', 'tests/dynamics']; import test_same_chain as t; "
            "from mlmglauber.models.opening import open_model; print(t.fast(open_model('tiny-en')))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600,
                          cwd=ROOT, env=os.environ | variables)
    assert done.stdout.strip() == GOLDEN[4, 30]


@pytest.mark.soak
def test_long_chains(lm, record_property):
    """24 chains of 5,000 steps at each temperature, in two ways; every thousandth draw is checked, none differs."""
    engine = Engine(lm)
    found = trajectory(lm, engine.advance, count=24, steps=5000)
    assert found == fast(lm, 7, 1 << 20, count=24, steps=5000)
    engine.finish_checks()
    assert engine.precision.differed == 0
    record_property("survived", f"{engine.precision.checked} of {engine.counters.rows} draws checked, none differed")


def test_what_float32_would_draw_otherwise_is_never_certain(lm):
    """Draws of tiny-en in both precisions: they differ somewhere, and there float32 was not certain."""
    generator, differing, certain, count = np.random.default_rng(0), 0, 0, 0
    precision = Precision(lm)
    precision.measure(TAUS)
    ids = np.array([start[:12] for start in starts_of(lm, 16)])
    for tau in (0.3, 1.0, 2.0):
        sites, taus, cold = generator.integers(0, 12, 16), np.full(16, tau), np.zeros(16, bool)
        rows, exact = (lm.log_probs_at(ids, sites, level) for level in (0, 1))
        old = ids[np.arange(16), sites]
        for _ in range(120):
            uniforms = generator.random((16, 2))
            a, b = (draw(block_rows(each, old, taus, uniforms[:, 0], cold), uniforms, taus, cold, tolerance)
                    for each, tolerance in ((rows, precision.tolerances[0]), (exact, 0.0)))
            differing += int((a.tokens != b.tokens).sum())
            assert (a.tokens == b.tokens)[a.certain].all()
            certain += int(a.certain.sum())
            count += 16
    assert certain > 0.99 * count


def test_a_tolerance_that_is_too_small_is_widened_with_one_warning(lm):
    engine = Engine(lm)
    engine.precision.measure(TAUS)
    engine.precision.tolerances[0] = 2.0**-30
    engine.precision.to_check = lambda uniforms: np.ones(len(uniforms), bool)
    def run():
        trajectory(lm, engine.advance)
        engine.finish_checks()

    with pytest.warns(MlmWarning, match="rounding errors are larger") as caught:
        run()
    assert len(caught) == 1
    assert engine.precision.tolerances[0] > 2.0**-24
    assert engine.precision.checked > 100


def test_the_device_gives_the_block_rows_of_the_reference(lm):
    """Masses, blocks, log-probabilities and gaps in float64 equal numpy's; in float32 nearly so."""
    generator = np.random.default_rng(5)
    ids = np.array([start[:12] for start in starts_of(lm, 10)])
    sites, taus = generator.integers(0, 12, 10), generator.choice([0.0, 1e-7, 0.3, 1.0, 2.0], 10)
    asked = Draws(ids, sites, taus, generator.random(10), taus < 1e-4)
    expected = block_rows(lm.log_probs_at(ids, sites, 1), asked.old, taus, asked.uniforms, asked.cold)
    for level, most in ((1, 1e-10), (0, 1e-4)):
        found = lm.weigh(asked, level)
        for name in ("masses", "inside", "beside", "gap"):
            a, b = getattr(found, name), getattr(expected, name)
            if level == 1 or name != "inside":
                assert a[np.isfinite(b)] == pytest.approx(b[np.isfinite(b)], abs=most)
        warm = taus >= 0.3
        assert found.logp_old[warm] == pytest.approx(expected.logp_old[warm], abs=10 * most)
        assert found.finite.all()
