"""States of --start mask whose sites are not all drawn yet: counted, told of once, and no text anywhere."""

import orjson
import pytest
from conftest import ROOT, quick_shell
from record_schema import VALIDATOR

pytestmark = pytest.mark.in_process

PASSAGES = (ROOT / "examples" / "passages.jsonl").read_bytes()
SHORT = "mlm-sample --start mask --length 8 --sweeps 2 --chains 4 --seed 1"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three texts, four chains each, two sweeps: what the command wrote and said."""
    sh = quick_shell(tmp_path_factory.mktemp("masked"))
    (sh.folder / "texts").write_bytes(b"".join(PASSAGES.splitlines(keepends=True)[:3]))
    done = sh(f"{SHORT} --on-change texts")
    (sh.folder / "states").write_bytes(done.out)
    return sh, done


def last_states(states):
    return {(state["id"], state["chain"]): state for state in states}.values()


def test_masked_sites_are_counted_in_the_record_and_told_once(run):
    _, done = run
    for state in done.states:
        assert state.get("masked", 0) == state["ids"].count(4) == state["text"].count("[MASK]")
        VALIDATOR.validate(state)
    ends = [state.get("masked", 0) for state in last_states(done.states)]
    assert done.status == 0
    assert 0 < sum(map(bool, ends)) < 12
    assert done.err == (f"mlm-sample: {sum(map(bool, ends))} of 12 chains ended with masked sites, {sum(ends)} in all "
                        "(`masked`), so their last states have no text; run more sweeps\n")


def test_scans_that_visit_every_site_leave_none(run):
    sh, _ = run
    done = sh("mlm-sample --start mask --length 8 --sweeps 1 --scan permutation --chains 2 --seed 1 texts")
    assert (done.status, done.err) == (0, "")
    assert all("masked" not in state for state in last_states(done.states))


def test_workers_and_runs_from_records_say_the_same_line(run):
    sh, done = run
    shared = sh(f"{SHORT} --on-change --dask local:1 texts", timeout=200)
    assert (shared.status, shared.err, len(shared.states)) == (0, done.err, len(done.states))
    again = sh("mlm-sample --from-run states --check texts")
    assert (again.status, again.err) == (0, "mlm-sample: every record is the same as in states\n" + done.err)


def test_a_masked_state_has_no_embedding_and_is_no_reference(run):
    sh, done = run
    masked = sum("masked" in state for state in done.states)
    embedded = sh("mlm-embed states")
    assert (embedded.status, embedded.err) == (0, f"mlm-embed: {masked} states with masked sites were given no "
                                                  "embedding: they have no text\n")
    for state in embedded.states:
        assert (state["embedding"] is None) == ("masked" in state) == ("embedding_reason" in state)
        VALIDATOR.validate(state)
    (sh.folder / "embedded").write_bytes(embedded.out)
    drifts = sh("mlm-drift embedded").states
    first = {}
    for state in drifts:
        if "masked" not in state:
            first.setdefault((state["id"], state["chain"]), state["drift"])
    assert 0 < len(first) < 12
    assert max(first.values()) < 1e-12
    plane = sh("mlm-embed --pca 2 states").states
    assert [state["embedding"] is None for state in plane] == ["masked" in state for state in done.states]


@pytest.mark.parametrize("command", [
    "mlm-rect --rectangles 1", "mlm-influence --tau 1", "mlm-exact --top 2 --sites 0,1", "mlm-traps --find",
    "mlm-couple --start text --lag 4 --max-steps 40 --seed 1", "mlm-sample --sweeps 1 --seed 1"])
def test_commands_that_read_texts_leave_masked_states_out(run, command):
    sh, done = run
    states = [state for state in done.states if "masked" in state][:3] + list(last_states(done.states))[:3]
    whole = sum("masked" not in state for state in states)
    given = b"".join(orjson.dumps(record) + b"\n" for record in [done.records[0], *states])
    answered = sh(command, stdin=given)
    assert answered.status == 0
    assert f"{len(states) - whole} states with masked sites were left out: they have no text" in answered.err
    assert "special token" not in answered.err


@pytest.mark.parametrize("command", ["mlm-traps --min-steps 2 --summary", "mlm-rect --path --burn-in 0"])
def test_chains_begin_with_their_first_whole_text(run, command):
    sh, done = run
    masked = sum("masked" in state for state in done.states)
    answered = sh(f"{command} states")
    assert f"{masked} states with masked sites were left out: they have no text" in answered.err
    assert answered.status in (0, 65)  # a chain of one state has no entropy production
    if "traps" in command:
        steps = sum(max(state["step"] for state in chain) - min(state["step"] for state in chain) for chain in [
            [state for state in done.states if (state["id"], state["chain"]) == key and "masked" not in state]
            for key in {(state["id"], state["chain"]) for state in done.states}] if chain)
        assert answered.records[-1]["steps"] == steps


def test_an_input_of_masked_states_alone_is_said_once(run):
    sh, done = run
    given = b"".join(orjson.dumps(state) + b"\n" for state in done.states[:2])
    answered = sh("mlm-embed", stdin=given)
    assert answered.err == "mlm-embed: 2 states with masked sites were given no embedding: they have no text\n"
    assert sh("mlm-traps --summary", stdin=given).status == 65
