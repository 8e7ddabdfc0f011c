"""A finite chain solved: against the oracles, closed forms, bounds that are theorems, and sampled states."""

from itertools import pairwise, product
from math import ceil, exp, log, tanh

import numpy as np
import orjson
import pytest
from oracles import STATIONARY_A, STATIONARY_B, TABLE_A, TABLE_B, law_after, site_kernels

from mlmglauber.measures.exact import mixing, stationary
from mlmglauber.measures.exact.agreement import agreement
from mlmglauber.measures.exact.finite_chain import FiniteChain, attractors, closed_classes, local_log_probs
from mlmglauber.measures.exact.mixing import mixing_times, second_eigenvalue
from mlmglauber.measures.exact.restriction import Restriction, likeliest
from mlmglauber.measures.exact.solve import influences, rectangles, solve
from mlmglauber.measures.exact.stationary import eliminate
from mlmglauber.measures.influence.matrix import mixing_bound
from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process

LAG_TABLE = [(0, 0.7784), (1, 0.5575), (2, 0.4150), (4, 0.2258), (8, 0.0650), (12, 0.0199), (20, 0.0021)]


def chain_of(table, tau=1.0):
    if not isinstance(table, TableConditional):
        table = TableConditional(table)
    shape = (table.vocab_size,) * table.sites
    base = local_log_probs(shape, lambda site, rows: table.log_probs(rows, np.full(len(rows), site)))
    return FiniteChain(shape, base, tau)


def solved(chain, eps=0.25, start=None):
    warm = FiniteChain(chain.shape, chain.base, 1.0)
    return solve(chain, attractors(warm), rectangles(chain.shape, chain.base), eps, start)


def random_chain(generator, shape, strength, tau=1.0):
    """Incompatible conditionals that depend on each other as strongly as told."""
    size = int(np.prod(shape))
    loose = FiniteChain(shape, strength * generator.standard_normal((len(shape), size)), 1.0)
    return FiniteChain(shape, loose.logp, tau)


def ising(n, coupling):
    spins = np.array(list(product([-1, 1], repeat=n)))
    energy = coupling * (spins[:, 1:] * spins[:, :-1]).sum(axis=1)
    return TableConditional.from_joint(np.exp(energy).reshape((2,) * n)), energy


@pytest.mark.parametrize("table", [TABLE_A, TABLE_B])
@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.0])
def test_the_kernel_is_the_enumerated_one(table, tau):
    chain = chain_of(table, tau)
    kernels = site_kernels(TableConditional(table), tau)
    whole = kernels.mean(axis=0)
    laws = np.random.default_rng(1).random((3, chain.states))
    for form in (chain.dense(), chain.matrix().toarray(), chain.forward(np.eye(chain.states)),
                 chain.backward(np.eye(chain.states)).T):
        assert form == pytest.approx(whole, abs=1e-15)
    assert chain.sweep(laws) == pytest.approx(laws @ kernels[0] @ kernels[1], abs=1e-14)
    assert chain.sweep_backward(laws) == pytest.approx(laws @ (kernels[0] @ kernels[1]).T, abs=1e-14)
    assert 1 - chain.leaving().mean(axis=0) == pytest.approx(whole.diagonal(), abs=1e-15)
    chain.entries = lambda: 10**9  # along the axes, without the matrix
    assert chain.forward(laws) == pytest.approx(laws @ whole, abs=1e-14)
    assert chain.backward(laws) == pytest.approx(laws @ whole.T, abs=1e-14)


def test_table_a():
    exact = solved(chain_of(TABLE_A), start=0)
    assert exact.law == pytest.approx(STATIONARY_A, abs=1e-6)
    assert exact.influences == pytest.approx(np.array([[0, 0.6], [0.7, 0]]), abs=1e-12)
    assert exact.alpha == pytest.approx(0.7)
    assert exact.spectral_radius == pytest.approx(0.648074, abs=1e-6)
    assert (exact.mixing.worst, exact.mixing.exact, exact.bound) == (5, True, 14)
    assert exact.escape[[0, 4, 8]] == pytest.approx(0.35)
    assert exact.scan_tv == pytest.approx(0.0868, abs=5e-5)
    assert exact.entropy_production == pytest.approx(0.061697, abs=1e-6)
    assert exact.reversible is False
    found = rectangles((3, 3), chain_of(TABLE_A).base)
    assert (found.mean, found.largest) == pytest.approx((1.527756, 3.360375), abs=1e-6)
    assert found.number == 9


@pytest.mark.parametrize(("tau", "modulus", "c"), [(0.5, 0.870892, (0.888889, 0.947958)), (1, 0.728957, (0.6, 0.7)),
                                                   (2, 0.617741, (0.325250, 0.392794))])
def test_table_a_at_other_temperatures(tau, modulus, c):
    exact = solved(chain_of(TABLE_A, tau))
    assert exact.second.modulus == pytest.approx(modulus, abs=1e-6)
    values = np.linalg.eigvals(chain_of(TABLE_A, tau).dense())
    second = values[np.argsort(-abs(values))[1]]
    assert exact.second.is_complex == (abs(second.imag) > 1e-7)
    assert (exact.influences[0, 1], exact.influences[1, 0]) == pytest.approx(c, abs=1e-6)


def test_distances_from_a_start():
    """The exact column of the oracle's L-lag table, and t_mix as the first time below eps."""
    chain = chain_of(TABLE_A)
    law, now = solved(chain).law, np.eye(9)[0]
    distances = []
    for _ in range(21):
        distances.append(0.5 * abs(now - law).sum())
        now = chain.forward(now)
    for time, distance in LAG_TABLE:
        assert distances[time] == pytest.approx(distance, abs=5e-5)
        assert 0.5 * abs(law_after(TableConditional(TABLE_A), 1.0, "random", 0, time) - law).sum() == pytest.approx(
            distances[time], abs=1e-12)
    for eps in (0.6, 0.25, 0.05, 0.003):
        first = next(t for t, distance in enumerate(distances) if distance <= eps)
        assert solved(chain, eps, start=0).mixing.from_start == first


def test_table_b():
    chain = chain_of(TABLE_B)
    exact = solved(chain)
    assert exact.law == pytest.approx(STATIONARY_B["random"], abs=1e-6)
    swept = stationary.stationary(chain, attractors(chain), systematic=True).law
    assert swept == pytest.approx(STATIONARY_B["systematic"], abs=1e-6)
    swapped = chain_of([TABLE_B[1], TABLE_B[0]])  # site 1 first: y, then x
    other = stationary.stationary(swapped, attractors(swapped), systematic=True).law.reshape(2, 2).T.ravel()
    assert other == pytest.approx([0.446316, 0.132632, 0.111579, 0.309474], abs=1e-6)
    assert rectangles((2, 2), chain.base).mean == pytest.approx(1.828127, abs=1e-6)
    assert exact.entropy_production == pytest.approx(0.045222, abs=1e-6)
    assert (exact.second.modulus, exact.second.is_complex) == (pytest.approx(0.611803, abs=1e-6), False)


@pytest.mark.parametrize("tau", [0.4, 1.0, 3.0])
def test_an_ising_chain_is_its_boltzmann_law(tau):
    coupling = 0.6
    table, energy = ising(8, coupling)
    exact = solved(chain_of(table, tau))
    law = np.exp(energy / tau)
    assert exact.law == pytest.approx(law / law.sum(), abs=1e-12)
    assert exact.influences[0, 1] == pytest.approx(tanh(coupling / tau), abs=1e-12)
    assert exact.influences[7, 6] == pytest.approx(tanh(coupling / tau), abs=1e-12)
    assert exact.influences[0, 2:] == pytest.approx(0, abs=1e-12)
    assert exact.influences[3, [2, 4]] == pytest.approx(0.5 * tanh(2 * coupling / tau), abs=1e-12)
    assert rectangles((2,) * 8, chain_of(table).base).largest < 1e-12
    assert exact.entropy_production == pytest.approx(0, abs=1e-12)
    assert exact.scan_tv == pytest.approx(0, abs=1e-12)
    assert exact.reversible
    assert not exact.second.is_complex


def test_two_cold_spins_mix_when_the_closed_form_says():
    """Two spins from ++: TV is lambda^t / 2 from the first step on, lambda = (1 + tanh J) / 2; up to 10^11 steps."""
    for coupling in (0.5, 2.0, 6.0, 13.0):
        exact = solved(chain_of(ising(2, coupling)[0]))
        gap = exp(-2 * coupling) / (1 + exp(-2 * coupling))
        assert 1 - exact.second.modulus == pytest.approx(gap, rel=1e-4)
        assert exact.mixing.worst == pytest.approx(ceil(log(2) / -np.log1p(-gap)), rel=1e-11)


def test_bounds_are_never_below_the_exact_mixing_time():
    """200 random tables: the contraction bound, the two bounds around t_mix, and the influences by brute force."""
    generator = np.random.default_rng(3)
    contracting = 0
    for _ in range(200):
        shape = tuple(generator.integers(2, 4, generator.integers(2, 4)).tolist())
        chain = random_chain(generator, shape, generator.choice([0.1, 0.3, 1.0]), generator.choice([0.5, 1.0, 2.0]))
        eps = float(generator.choice([0.25, 0.1, 0.01]))
        exact = solved(chain, eps)
        time = exact.mixing.worst
        powers = np.linalg.matrix_power(chain.dense(), max(time - 1, 0))
        assert 0.5 * abs(powers - exact.law).sum(axis=1).max() > eps
        assert 0.5 * abs(powers @ chain.dense() - exact.law).sum(axis=1).max() <= eps + 1e-12
        if exact.bound is not None:
            contracting += 1
            assert time <= exact.bound
        low = mixing._spectral_low(exact.second, eps)
        assert low is None or low <= time
        assert mixing._singular_high(chain, exact.law, eps) >= time
    assert contracting > 60


def test_influences_are_those_of_all_pairs():
    chain = random_chain(np.random.default_rng(4), (2, 3, 2), 1.0)
    found = np.zeros((3, 3))
    states = list(product(*map(range, chain.shape)))
    place = {state: k for k, state in enumerate(states)}

    def law(i, state):
        return np.array([chain.p[i][place[(*state[:i], v, *state[i + 1:])]] for v in range(chain.shape[i])])

    for x, y in product(states, states):
        differ = [k for k in range(3) if x[k] != y[k]]
        if len(differ) == 1:
            for i in set(range(3)) - set(differ):
                found[i, differ[0]] = max(found[i, differ[0]], 0.5 * abs(law(i, x) - law(i, y)).sum())
    assert influences(chain) == pytest.approx(found, abs=1e-14)


def test_entropy_production_is_the_sum_over_moves():
    chain = random_chain(np.random.default_rng(5), (2, 2, 3), 1.5)
    exact = solved(chain)
    flow = exact.law[:, None] * chain.dense()
    moved = (flow > 0) & (flow.T > 0)
    assert exact.entropy_production == pytest.approx((flow[moved] * np.log(flow[moved] / flow.T[moved])).sum())


@pytest.mark.parametrize("tau", [1.0, 0.2, 0.03])
def test_large_chains_are_solved_as_small_ones_are(tau, monkeypatch):
    """The ways of a large chain on one that is small enough for the full kernel."""
    chain = random_chain(np.random.default_rng(6), (2,) * 9, 1.0, tau)
    small = solved(chain, start=3)
    monkeypatch.setattr(stationary, "DENSE", 500)
    monkeypatch.setattr(stationary, "SINGLE", 40)
    monkeypatch.setattr(stationary, "SINGLE_SWEEP", 40)
    monkeypatch.setattr(mixing, "ALL_STARTS", 500)
    large = solved(chain, start=3)
    assert large.error < 1e-9
    assert large.law == pytest.approx(small.law, abs=1e-9)
    assert large.scan_tv == pytest.approx(small.scan_tv, abs=1e-8)
    assert large.mixing[:4] == small.mixing[:4]  # found, and checked over all starts
    monkeypatch.setattr(mixing, "WORK", 0)
    sought = solved(chain, start=3).mixing
    assert not sought.exact
    assert sought.worst <= small.mixing.worst <= sought.high
    assert sought.low <= small.mixing.worst


def test_a_large_nearly_reducible_chain_has_no_law(monkeypatch):
    chain = chain_of(ising(9, 3.0)[0], 0.2)
    exact = solved(chain)
    assert exact.law[[0, -1]] == pytest.approx(0.5, abs=1e-9)  # by elimination, whatever the gap
    monkeypatch.setattr(stationary, "DENSE", 500)
    monkeypatch.setattr(mixing, "ALL_STARTS", 500)
    large = solved(chain)
    assert large.law is None
    assert "nearly reducible" in large.reasons["likeliest"]


def test_elimination_keeps_digits_that_the_gap_has_not():
    kernel = np.array([[1 - 1e-30, 1e-30, 0], [2e-30, 0.5, 0.5], [0, 1e-10, 1 - 1e-10]])
    law = eliminate(kernel.copy())
    assert law[0] * 1e-30 == pytest.approx(law[1] * 2e-30, rel=1e-14)
    assert law[1] * 0.5 == pytest.approx(law[2] * 1e-10, rel=1e-14)


def test_temperature_zero_and_zeros():
    cold = chain_of(TABLE_A, 0.0)
    assert closed_classes(cold)[0] == 3
    exact = solved(cold)
    assert exact.law is None
    assert exact.mixing.worst is None
    assert "reducible: 3 closed sets" in exact.reasons["scan_tv"]
    one = chain_of([[[1.0, 0.0], [1.0, 0.0]], [[0.3, 0.7], [0.5, 0.5]]])  # site 0 goes to 0 and stays
    exact = solved(one)
    assert exact.law == pytest.approx([0.3, 0.7, 0, 0])
    assert exact.reversible is None
    assert exact.entropy_production == pytest.approx(0)


def test_steepest_ascent_ends_in_traps_or_in_a_cycle():
    assert attractors(chain_of(TABLE_A)).reshape(3, 3).diagonal().tolist() == [0, 4, 8]
    around = chain_of([[[0.1, 0.9], [0.9, 0.1]], [[0.9, 0.1], [0.1, 0.9]]])  # one site copies, the other contradicts
    assert set(attractors(around).tolist()) == {0}


def test_the_conductance_of_a_basin():
    chain = chain_of(TABLE_A)
    exact = solved(chain)
    inside = attractors(chain) == attractors(chain)[exact.law.argmax()]
    flow = exact.law[:, None] * chain.dense()
    mass = exact.law[inside].sum()
    assert exact.basin.states == inside.sum()
    assert exact.basin.mass == pytest.approx(mass)
    assert exact.basin.conductance == pytest.approx(flow[inside][:, ~inside].sum() / min(mass, 1 - mass))


def test_one_site_and_one_state():
    single = FiniteChain((4,), np.log([[0.1, 0.2, 0.3, 0.4]]), 1.0)
    exact = solved(single, start=0)
    assert exact.law == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert (exact.mixing.worst, exact.mixing.from_start, exact.alpha) == (1, 1, 0.0)
    assert exact.second.modulus == pytest.approx(0, abs=1e-12)
    nothing = FiniteChain((1, 1), np.zeros((2, 1)), 1.0)
    exact = solved(nothing, start=0)
    assert (exact.law.tolist(), exact.mixing.worst) == ([1.0], 0)
    assert exact.basin.conductance is None


def test_the_bound():
    assert mixing_bound(0.7, 2, 0.25) == 14
    assert mixing_bound(0.0, 5, 0.25) == ceil(5 * log(20))
    assert mixing_bound(1.0, 2, 0.25) is None


def test_agreement_of_independent_draws():
    """1000 draws of the law itself: p is uniform, and its TV is as expected; off by a tenth, the test sees it."""
    law = np.array(STATIONARY_A) / sum(STATIONARY_A)
    generator = np.random.default_rng(7)
    found = [agreement(generator.multinomial(1000, law), law) for _ in range(300)]
    assert 0.4 < np.mean([one.p_value for one in found]) < 0.6  # 0.5 +- 6 standard errors of 0.017
    assert np.mean([one.tv for one in found]) == pytest.approx(found[0].expected_tv, rel=0.05)
    wrong = law.copy()
    wrong[[0, 2]] += [-0.05, 0.05]
    assert agreement(generator.multinomial(1000, wrong), law).p_value < 1e-6
    assert agreement(np.array([0, 1]), np.array([0.5, 0.5])).p_value is None
    assert agreement(np.array([0, 0]), np.array([0.5, 0.5])).tv is None


def test_a_restriction_renormalises_and_asks_for_each_context_once():
    table = TableConditional(np.random.default_rng(8).dirichlet(np.ones(4), (3, 4, 4)))
    space = Restriction(np.array([0, 3, 1]), [0, 2], [[2, 0], [1, 3, 0]])
    asked = []

    class Counting:
        vocab_size, allowed = 4, table.allowed

        def log_probs(self, ids, sites):
            asked.extend(map(tuple, np.column_stack([sites, ids])))
            return table.log_probs(ids, sites)

    base = space.log_probs(Counting(), rows=2)
    assert len(asked) == space.rows == 5
    for state in range(space.states):
        ids = space.ids(state)
        assert space.place(ids) == state
        law = table.tables[2][ids[0], ids[1]][[0, 1, 3]]
        assert np.exp(base[1, state]) == pytest.approx(table.tables[2][ids[0], ids[1], ids[2]] / law.sum())
    assert space.place([0, 2, 1]) is None
    assert likeliest(TableConditional(TABLE_A), np.array([0, 2]), [0, 1], 2) == [[2, 0], [0, 2]]


@pytest.fixture
def exact(sh, tables):
    def run(arguments, text="a b", **more):
        return sh(f"echo '{text}' | mlm-exact -m a.json {arguments}", **more)

    return run


def test_the_command_on_table_a(exact):
    done = exact("--top 3 -t 0.5,1,2 --influences")
    assert (done.status, done.err) == (0, "")
    run, *found = done.records
    assert (run["type"], run["command"], run["options"]["top"]) == ("run", "mlm-exact", 3)
    assert [record["tau"] for record in found] == [0.5, 1.0, 2.0]
    one = found[1]
    assert (one["type"], one["run"], one["id"], one["n"]) == ("exact", run["run"], "0", 2)
    assert (one["states"], one["sites"], one["choices"]) == (9, [0, 1], [["a", "b", "c"]] * 2)
    assert [state["text"] for state in one["likeliest"]] == ["b b", "a a", "c c", "a b", "c b"]
    assert one["likeliest"][1]["probability"] == pytest.approx(0.221583, abs=1e-6)
    assert one["likeliest"][1]["residence"] == pytest.approx(2.857143, abs=1e-6)
    assert one["influences"] == [[0, pytest.approx(0.6)], [pytest.approx(0.7), 0]]
    assert (one["tmix"], one["tmix_exact"], one["bound"]) == (5, True, 14)
    assert [record["mean_abs_delta"] for record in found] == pytest.approx([3.055511, 1.527756, 0.763878], abs=1e-6)
    assert found[0]["second_modulus"] == pytest.approx(0.870892, abs=1e-6)


def test_null_has_a_reason(exact):
    for record in exact("--top 3 -t 0,0.01").records[1:]:
        for name, value in record.items():
            if value is None:
                assert record[f"{name}_reason"]
    frozen = exact("--vocab a,c --sites 0").records[1]
    assert (frozen["states"], frozen["rectangles"], frozen["mean_abs_delta"]) == (2, 0, None)
    assert frozen["mean_abs_delta_reason"]
    assert exact("--vocab a,c").records[1]["tmix_text_reason"] == "the text is none of the states"


def test_what_is_refused(exact):
    for arguments, status, reason in (
            ("", 2, "give either --vocab or --top"), ("--vocab a --top 2", 2, "give either --vocab or --top"),
            ("--vocab a,q", 2, "'q' is not a token"), ("--vocab a,b,a", 2, "the same token"),
            ("--top 2 --eps 1", 2, "eps"),
            ("--top 3 --max-states 8", 65, "9 states (3 x 3), --max-states allows 8"),
            ("--top 3 --sites 2", 65, "site 2"), ("--top 3 --compare gone", 66, "gone")):
        done = exact(arguments)
        assert done.status == status
        assert reason in done.err


def test_sampled_states_agree_with_the_law(sh, tables):
    """Fixed seed; a right sampler is rejected with probability 1e-3."""
    common = "mlm-sample -m a.json --seed 1 -c 4 --steps 6000 -t 0.5,1"
    sh(f"echo 'a b' | {common} --every 1 > every; echo 'a b' | {common} --on-change > change")
    for name in ("every", "change"):
        found = sh(f"echo 'a b' | mlm-exact -m a.json --vocab a,b,c -t 0.5,1,2 --compare {name}").records[1:]
        for record in found[:2]:
            compare = record["compare"]
            assert compare["p_value"] > 1e-3
            assert record["second_modulus"] ** compare["thin"] <= 0.01
            assert compare["tv"] < 2 * compare["expected_tv"]
            assert compare["draws"] == 4 * (6000 // compare["thin"])
        assert found[2]["compare"]["p_value"] is None
        assert "no state" in found[2]["compare"]["reason"]
    hot = sh("sed 's/\"tau\":0.5/\"tau\":1.0/' every | grep -v '\"tau\":1,' > hot; "
             "echo 'a b' | mlm-exact -m a.json --vocab a,b,c --compare hot").records[1]
    assert hot["compare"]["p_value"] < 1e-3  # chains of another temperature are seen


def test_sampling_under_the_same_restriction(sh, tables):
    """Fixed seed; a right sampler is rejected with probability 1e-3."""
    sh("echo 'a c' | mlm-sample -m a.json --seed 2 -c 4 --steps 6000 --every 1 --allow a,c > states")
    record = sh("echo 'a c' | mlm-exact -m a.json --vocab c,a --compare states").records[1]
    assert record["compare"]["p_value"] > 1e-3
    assert record["compare"]["outside"] == 0
    sh("echo 'a c' | mlm-sample -m a.json --seed 2 --steps 500 --every 1 > free")
    free = sh("echo 'a c' | mlm-exact -m a.json --vocab c,a --compare free").records[1]["compare"]
    assert free["outside"] > 0
    assert "outside the restriction" in free["reason"]
    sh("echo 'a c' | mlm-sample -m a.json --seed 2 --steps 50 --scan systematic > swept")
    swept = sh("echo 'a c' | mlm-exact -m a.json --vocab c,a --compare swept")
    assert swept.status == 2
    assert "does not have the random scan" in swept.err


def test_a_real_model(sh):
    """tiny-en: the records hold together, and conditionals of three temperatures are one set."""
    done = sh("echo 'the cat sat on the mat' | mlm-exact --top 2 --sites 1,2,5 -t 0.3,1,3 --influences")
    assert (done.status, done.err) == (0, "")
    found = done.records[1:]
    for record in found:
        assert record["states"] == 8
        assert all(word in record["choices"][k] for k, word in enumerate(["cat", "sat", "mat"]))
        assert sum(state["probability"] for state in record["likeliest"]) <= 1 + 1e-12
        assert record["bound"] is None or record["tmix"] <= record["bound"]
    assert orjson.dumps(found[0]["choices"]) == orjson.dumps(found[2]["choices"])
    alphas = [record["alpha"] for record in found]
    assert all(a > b for a, b in pairwise(alphas))
    assert found[1]["mean_abs_delta"] == pytest.approx(3 * found[2]["mean_abs_delta"])


def test_mixing_times_of_a_given_start_only():
    chain = chain_of(TABLE_A)
    law = solved(chain).law
    second = second_eigenvalue(chain, law)
    assert mixing_times(chain, law, 0.25, None, second).from_start is None
    assert max(mixing_times(chain, law, 0.25, start, second).from_start for start in range(9)) == 5
