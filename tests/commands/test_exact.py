"""mlm-exact on tables and tiny-en, and what mlm-sample draws beside what it solves."""

from itertools import pairwise

import orjson
import pytest

pytestmark = pytest.mark.in_process

PLL_A = 0.236771, 0.198016
"""Total variation and KL between the law of table A and q(a, b) ~ p_0(a | b) p_1(b | a), by hand in numpy."""


@pytest.fixture
def exact(sh, tables):
    def run(arguments, text="a b", **more):
        return sh(f"echo '{text}' | mlm-exact -m a.json {arguments}", **more)

    return run


def test_the_command_on_table_a(exact):
    done = exact("--top 3 -t 0.5,1,2 --matrix")
    assert (done.status, done.err) == (0, "")
    run, *found = done.records
    assert (run["type"], run["command"], run["options"]["top"]) == ("run", "mlm-exact", 3)
    assert [record["tau"] for record in found] == [0.5, 1.0, 2.0]
    one = found[1]
    assert one["scan_tv"] == pytest.approx(0.0868, abs=5e-5)
    assert one["permutation_tv"] == pytest.approx(0, abs=1e-12)  # always so with two sites
    assert one["sweeps_tv"] == pytest.approx(one["scan_tv"], abs=1e-12)
    assert one["pll_tv"] == pytest.approx(PLL_A[0], abs=1e-6)
    assert one["pll_kl"] == pytest.approx(PLL_A[1], abs=1e-5)
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
    frozen = exact("--allow a,c --sites 0").records[1]
    assert (frozen["states"], frozen["rectangles"], frozen["mean_abs_delta"]) == (2, 0, None)
    assert frozen["mean_abs_delta_reason"]
    assert exact("--allow a,c").records[1]["tmix_text_reason"] == "the text is none of the states"


def test_what_is_refused(exact):
    for arguments, status, reason in (
            ("", 2, "give either --allow or --top"), ("--allow a --top 2", 2, "give either --allow or --top"),
            ("--allow a,q", 2, "'q' is not a token"), ("--allow a,b,a", 2, "the same token"),
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
        found = sh(f"echo 'a b' | mlm-exact -m a.json --allow a,b,c -t 0.5,1,2 --compare {name}").records[1:]
        for record in found[:2]:
            compare = record["compare"]
            assert compare["p_value"] > 1e-3
            assert record["second_modulus"] ** compare["thin"] <= 0.01
            assert compare["tv"] < 2 * compare["expected_tv"]
            assert compare["draws"] == 4 * (6000 // compare["thin"])
        assert found[2]["compare"]["p_value"] is None
        assert "no state" in found[2]["compare"]["reason"]
    hot = sh("sed 's/\"tau\":0.5/\"tau\":1.0/' every | grep -v '\"tau\":1,' > hot; "
             "echo 'a b' | mlm-exact -m a.json --allow a,b,c --compare hot").records[1]
    assert hot["compare"]["p_value"] < 1e-3  # chains of another temperature are seen


def test_sampling_under_the_same_restriction(sh, tables):
    """Fixed seed; a right sampler is rejected with probability 1e-3."""
    sh("echo 'a c' | mlm-sample -m a.json --seed 2 -c 4 --steps 6000 --every 1 --allow a,c > states")
    record = sh("echo 'a c' | mlm-exact -m a.json --allow c,a --compare states").records[1]
    assert record["compare"]["p_value"] > 1e-3
    assert record["compare"]["outside"] == 0
    sh("echo 'a c' | mlm-sample -m a.json --seed 2 --steps 500 --every 1 > free")
    free = sh("echo 'a c' | mlm-exact -m a.json --allow c,a --compare free").records[1]["compare"]
    assert free["outside"] > 0
    assert "outside the restriction" in free["reason"]
    sh("echo 'a c' | mlm-sample -m a.json --seed 2 --steps 50 --scan systematic > swept")
    swept = sh("echo 'a c' | mlm-exact -m a.json --allow c,a --compare swept")
    assert swept.status == 2
    assert "does not have the random scan" in swept.err


def test_a_real_model(sh):
    """tiny-en: the records hold together, and conditionals of three temperatures are one set."""
    done = sh("echo 'the cat sat on the mat' | mlm-exact --top 2 --sites 1,2,5 -t 0.3,1,3 --matrix")
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
