"""mlm-influence on tables and tiny-en."""

from itertools import product

import numpy as np
import orjson
import pytest
from oracles import TABLE_A

from mlmglauber.measures.influence.context import ascend, compare
from mlmglauber.measures.influence.matrix import (
    certified_tau,
    contraction,
    oscillation_bound,
)
from mlmglauber.measures.influence.replacements import Ascent, draw_changes
from mlmglauber.measures.traps.margins import site_rows
from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process
A = TableConditional(TABLE_A)
pytest_tables = pytest.mark.usefixtures("tables")
STATES = b"".join(orjson.dumps({"type": "state", "run": "r", "id": str(k // 2), "chain": k % 2, "step": 9, "tau": tau,
                                "ids": ids}) + b"\n"
                  for k, (ids, tau) in enumerate(product([[0, 0], [1, 2]], [0.5, 2])))


def of(done, kind):
    return [record for record in done.records if record["type"] == kind]


@pytest_tables
def test_records_of_the_command(sh):
    done = sh("echo 'a a' | mlm-influence -m a.json --tau 1,0.5 --draw uniform -r 2 --matrix --seed 1 --eps 0.1")
    assert (done.status, done.err) == (0, "")
    run, one, half = done.records
    assert (run["command"], run["seed"]) == ("mlm-influence", 1)
    assert (one["tau"], half["tau"], one["estimate"], one["run"]) == (1.0, 0.5, "lower", run["run"])
    assert np.array(one["matrix"]) == pytest.approx(np.array([[0, 0.6], [0.5, 0]]))
    assert one["row_sums"] == pytest.approx([0.6, 0.5])
    assert one["column_sums"] == pytest.approx([0.5, 0.6])
    assert [one[f"alpha_{size}"] for size in ("row", "column", "spectral")] == pytest.approx([0.6, 0.6, 0.3**0.5])
    assert one["tmix_if_alpha"] == int(np.ceil(2 / 0.4 * np.log(20)))
    assert one["contraction"] == pytest.approx(0.7625)
    assert one["oscillation"] == pytest.approx(np.log(49))
    assert (one["margin"], one["escape"], one["residence"]) == pytest.approx((0.693147, 0.35, 2.857143), abs=1e-6)
    assert one["escape_bound"] == pytest.approx(1)
    assert (one["certified_tau"], one["certified_reason"]) == (None, "a table of conditionals has no head")
    assert half["margin"] == one["margin"]
    assert half["escape"] < one["escape"]


@pytest_tables
@pytest.mark.parametrize("draw", ["top", "worst"])
def test_the_summary_of_all_states_is_exact(sh, draw):
    lines = "a a\nb b\nc c\n"
    done = sh(f"printf '{lines}' | mlm-influence -m a.json --tau 1,0.5,2 --draw {draw} -r 3 --summary")
    assert (done.status, done.err) == (0, "")
    assert [record["type"] for record in done.records] == ["run", *["summary"] * 4]
    half, one, two, length = of(done, "summary")
    assert [group["alpha_row"] for group in (half, one, two)] == pytest.approx([0.947958, 0.7, 0.392794], abs=1e-6)
    assert (one["alpha_spectral"], one["tmix_if_alpha"], one["count"]) == pytest.approx((0.648074, 14, 3), abs=1e-6)
    assert one["contraction"] is None
    assert "not typical" in one["contraction_reason"]
    assert length["crossing"]["row"]["low"] is None


@pytest_tables
def test_states_have_their_own_temperature_and_chains_make_the_interval(sh):
    done = sh("mlm-influence -m a.json --draw uniform -r 2", stdin=STATES)
    assert [(record["tau"], record["id"]) for record in of(done, "influence")] == [
        (0.5, "r/0/0/9"), (2.0, "r/0/1/9"), (0.5, "r/1/0/9"), (2.0, "r/1/1/9")]
    given = of(sh("mlm-influence -m a.json --tau 3 --draw uniform -r 2", stdin=STATES), "influence")
    assert {record["tau"] for record in given} == {3.0}
    half, two, _ = of(sh("mlm-influence -m a.json --draw uniform -r 2 --summary", stdin=STATES), "summary")
    values = [record["contraction"] for record in of(done, "influence")]
    for group, own in ((half, values[::2]), (two, values[1::2])):
        assert group["contraction"] == pytest.approx(np.mean(own))
        assert group["contraction_low"] is None
        assert group["contraction_reason"] == "an interval needs 4 texts, there are 2"
        assert (group["contraction_over"], group["contraction_count"]) == ("texts", 2)
    one_text = STATES.replace(b'"id":"1"', b'"id":"0"').replace(b'"tau":2', b'"tau":0.5')
    group = of(sh("mlm-influence -m a.json --draw uniform -r 2 --summary", stdin=one_text), "summary")[0]
    assert (group["contraction_over"], group["contraction_count"]) == ("chains", 2)
    alone = of(sh("mlm-influence -m a.json --draw uniform --summary", stdin=STATES.splitlines()[0]), "summary")[0]
    assert (alone["contraction_low"], alone["contraction_reason"]) == (None, "an interval needs 4 texts, there are 1")
    none = of(sh("mlm-influence -m a.json --keep-mb 0 --summary", stdin=STATES.splitlines()[0]), "summary")[1]
    assert (none["crossing"], none["crossing_reason"]) == (None, "not looked for with --keep-mb 0")


@pytest_tables
def test_draws_do_not_depend_on_company_and_fields_pass_through(sh):
    texts = b'{"id":"x","text":"a b","mood":"good","alpha_row":7}\n{"id":"y","text":"c a"}\n'
    both = of(sh("mlm-influence -m a.json -r 1 --seed 3", stdin=texts), "influence")
    alone = of(sh("mlm-influence -m a.json -r 1 --seed 3", stdin=texts.splitlines()[1]), "influence")
    assert both[1] | {"run": ""} == alone[0] | {"run": ""}
    assert both[0]["mood"] == "good"
    assert both[0]["alpha_row"] < 1


@pytest_tables
def test_frozen_sites_one_site_and_bad_records(sh):
    one = of(sh("echo 'a a' | mlm-influence -m a.json --freeze 1"), "influence")[0]
    assert (one["sites"], one["row_sums"], one["alpha_spectral"], one["contraction"]) == ([0], [0], 0, 0)
    assert (one["tmix_if_alpha"], len(one["gamma"])) == (2, 1)
    done = sh("mlm-influence -m a.json", stdin=b'{"text":"a a","tau":"hot"}\n{"text":"a b","tau":-1}\n{"text":"b a"}\n')
    assert done.status == 65
    assert 'stdin:1: "tau" is "hot", not a temperature' in done.err
    assert [record["id"] for record in of(done, "influence")] == ["2"]
    assert sh("echo 'a a' | mlm-influence -m a.json --eps 1").status == 2


@pytest.fixture(scope="module")
def tiny():
    from mlmglauber.models.opening import open_model

    return open_model("tiny-en")


def test_no_influence_of_tiny_en_is_above_what_its_head_proves(tiny):
    from mlmglauber.models.head_bound import head_bound

    head = head_bound(tiny).oscillation
    assert certified_tau(head, 16) == pytest.approx(523.9, abs=0.5)
    ids = np.array(tiny.encode("the capital of france is paris ."))
    sites = np.arange(len(ids))
    base = site_rows(tiny, ids, sites)
    ascent = Ascent(tiny.token_vectors(), ids, tiny.allowed, 2)
    found = ascend(tiny, ids, sites, base, ascent, (1.0, 20.0))
    assert 5 < found.oscillations.max() < head
    for k, tau in enumerate((1.0, 20.0)):
        assert (found.variations[k] <= oscillation_bound(found.oscillations, tau) + 1e-5).all()
        assert (found.variations[k] <= oscillation_bound(head, tau)).all()
    uniforms = np.random.default_rng(0).random((len(ids), 2))
    changes = draw_changes("conditional", base, ids, tiny.allowed, uniforms, 1.0)
    typical = compare(tiny, ids, sites, base, changes, (1.0,))
    assert typical.mean_contraction(0) < contraction(found.matrix(0).sum(axis=0).max(), len(ids))
