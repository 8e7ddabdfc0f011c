"""What made a chain, its model, --allow, --freeze, scan and tau, is read from its run record by all that look at it."""

import re

import numpy as np
import orjson
import pytest
from conftest import ROOT
from in_process import answer

from mlmglauber.commands.shared.chain_run import UNKNOWN, ChainLaw, Runs
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.reporter import CollectingReporter
from mlmglauber.commands.shared.spread.client import _Blocks
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.output import CollectedOutput

TEXT = b'{"id":"t","text":"b a a"}\n'
INC = (ROOT / "tests" / "tables" / "inc.json").read_bytes()
TABLES = orjson.loads(INC)["tables"]


@pytest.fixture
def inc(tmp_path):
    """inc.json, an incompatible table of three sites and letters, and another one of the same words."""
    (tmp_path / "inc.json").write_bytes(INC)
    other = [np.roll(np.array(table), 1, axis=-1).tolist() for table in TABLES]
    (tmp_path / "other.json").write_bytes(orjson.dumps({"tokens": ["a", "b", "c"], "tables": other}))
    return tmp_path


def sampled(folder, options, text=TEXT):
    done = answer(f"sample -m inc.json --seed 1 --on-change {options}", text, folder)
    assert (done.status, done.err) == (0, "")
    return done.out


def escape_by_hand(ids, tau, allowed, free):
    """The mean over free sites of 1 - p_tau(x_i | rest) among the allowed tokens, from the numbers of the table."""
    leave = []
    for site in free:
        rest = tuple(np.delete(ids, site))
        weights = {token: TABLES[site][rest[0]][rest[1]][token] ** (1 / tau) for token in allowed}
        leave.append(1 - weights.get(ids[site], 0) / sum(weights.values()))
    return float(np.mean(leave))


def test_the_case_of_the_audit(inc):
    """inc, --allow a,b, tau 0.1: "b a a" is left with chance 0.392, not 0.725, and stays are as long as they should be.

    One 95 % interval; the seed is fixed.
    """
    chains = sampled(inc, "--allow a,b --tau 0.1 --steps 40000 -c 2")
    traps = answer("traps -m inc.json -s 3 -r 0", chains, inc).of("trap")
    seen = [trap for trap in traps if trap["text"] == "b a a"]
    assert seen
    assert {round(trap["escape"], 3) for trap in seen} == {0.392}
    assert escape_by_hand([1, 0, 0], 0.1, [0, 1, 2], [0, 1, 2]) == pytest.approx(0.725, abs=5e-4)
    group, = answer("traps -m inc.json -s 3 -r 0 --summary", chains, inc).of("summary")
    assert group["ratio_low"] < 1 < group["ratio_high"]
    assert group["ratio_high"] / group["ratio_low"] < 1.1
    assert (group["allow"], group["scan"], group["model"]) == ("a,b", "random", "inc.json")


@pytest.mark.parametrize("seed", range(6))
def test_every_escape_is_of_the_law_that_moved_the_chain(inc, seed):
    """Drawn options: which words, which sites are frozen, which scan, which temperature."""
    rng = np.random.default_rng(seed)
    words = sorted(rng.choice(3, int(rng.integers(1, 4)), replace=False).tolist())
    frozen = sorted(rng.choice(3, int(rng.integers(0, 3)), replace=False).tolist())
    tau, scan = float(rng.choice([0.2, 0.5, 1, 2])), str(rng.choice(["random", "permutation", "systematic"]))
    options = f"--tau {tau} --steps 400 --scan {scan}"
    if len(words) < 3:
        options += f" --allow {','.join('abc'[word] for word in words)}"
    if frozen:
        options += f" --freeze {','.join(map(str, frozen))}"
    chains = sampled(inc, options)
    done = answer("traps -m inc.json -s 2 -r 0", chains, inc)
    traps, free = done.of("trap"), [site for site in range(3) if site not in frozen]
    assert traps
    for trap in traps:
        assert trap["escape"] == pytest.approx(escape_by_hand(trap["ids"], tau, words, free), abs=1e-12)
        assert len(trap["gamma"]) == len(free)
        if trap["bound"] is not None:
            assert trap["bound"] == pytest.approx((len(words) - 1) * np.exp(-trap["margin"] / tau) if len(words) > 1
                                                  else 0)
        if scan != "random":
            assert (trap["ratio"], trap["ratio_reason"]) == (None, f"the scan is {scan}")
        elif trap["escape"] and trap["ratio_exits"]:
            assert trap["ratio"] == pytest.approx(trap["ratio_steps"] / trap["ratio_exits"] * trap["escape"])


def restricted_table(folder, words):
    """A table that has the law of --allow for itself."""
    (folder / "few.json").write_bytes(orjson.dumps(orjson.loads(INC) | {"allowed": [word in words for word in "abc"]}))


def test_influences_of_states_are_those_of_their_chains(inc):
    chains = sampled(inc, "--allow a,b --freeze 2 --tau 0.7 --steps 8", b'{"id":"t","text":"b a c"}\n')
    states = [record for record in map(orjson.loads, chains.splitlines()) if record["type"] == "state"]
    found = answer("influence -m inc.json --draw uniform -r 2 --seed 1 --matrix", chains, inc).of("influence")
    restricted_table(inc, "ab")
    texts = b"".join(orjson.dumps({"id": "t", "text": state["text"]}) + b"\n" for state in states)
    wanted = answer("influence -m few.json --draw uniform -r 2 --seed 1 --matrix --freeze 2 --tau 0.7", texts,
                    inc).of("influence")
    assert len(found) == len(states) > 2
    for one, other in zip(found, wanted, strict=True):
        assert (one["tau"], one["sites"], one["allow"]) == (0.7, [0, 1], "a,b")
        for field in ("matrix", "escape", "gamma", "alpha_row"):
            assert np.array(one[field]) == pytest.approx(np.array(other[field]))
    both = answer("influence -m inc.json --seed 1 --freeze 0", chains, inc).of("influence")
    assert {tuple(one["sites"]) for one in both} == {(1,)}
    whole = sampled(inc, "--tau 0.7 --steps 4")
    mixed = answer("influence -m inc.json --seed 1 --summary", chains + whole, inc).of("summary")
    assert [(one["over"], one["sites"], one.get("allow")) for one in mixed] == [
        ("group", [0, 1], "a,b"), ("group", [0, 1, 2], None), ("length", [0, 1], "a,b"), ("length", [0, 1, 2], None)]


def test_a_shard_that_does_not_answer_the_run_record_has_heard_it(inc):
    chains = sampled(inc, "--allow a,b --freeze 2 --tau 0.7 --steps 30", b'{"id":"t","text":"b a c"}\n')
    whole = answer("influence -m inc.json --seed 1", chains, inc).of("influence")
    parts = [record for part in (1, 2, 3) for record in
             answer(f"influence -m inc.json --seed 1 --shard {part}/3", chains, inc).of("influence")]
    assert sorted(map(str, parts)) == sorted(map(str, whole))
    assert {tuple(one["sites"]) for one in parts} == {(0, 1)}


def test_the_descent_of_states_keeps_what_their_chain_keeps(inc):
    chains = sampled(inc, "--allow a,b --freeze 2 --tau 0.7 --steps 5", b'{"id":"t","text":"b a c"}\n')
    trap, *_ = answer("traps -m inc.json --find", chains, inc).of("trap")
    assert (trap["allow"], trap["freeze"], trap["ids"][2]) == ("a,b", [2], 2)
    assert set(trap["ids"][:2]) <= {0, 1}
    assert trap["at"][0]["escape"] == pytest.approx(escape_by_hand(trap["ids"], 1.0, [0, 1], [0, 1]))
    refused = answer("traps -m inc.json --certify a --seed 1", chains, inc)
    assert refused.status == 65
    assert "--allow, --top-k or --freeze" in refused.err


def test_states_of_another_model_are_refused(inc):
    chains = sampled(inc, "--tau 0.7 --steps 50")
    (inc / "chains").write_bytes(chains)
    for command, given in (("traps -s 2 -r 0", chains), ("influence --seed 1", chains), ("traps --find", chains),
                           ("exact --top 2", chains), ("rect --seed 1 --draw uniform", chains),
                           ("exact --allow a,b,c --tau 0.7 --compare chains", TEXT)):
        done = answer(f"{command.split(' ')[0]} -m other.json {' '.join(command.split(' ')[1:])}".strip(), given, inc)
        assert done.status == 2, command
        assert "was made with the model inc.json" in done.err
    same = answer("exact -m inc.json --allow a,b,c --tau 0.7 --compare chains", TEXT, inc)
    assert same.status == 0


@pytest.mark.parametrize(("options", "reason"), [
    ("--allow a,b", "draws other tokens"), ("--freeze 1", "draws at other sites")])
def test_states_of_another_restriction_are_no_verdict(inc, options, reason):
    """All their states lie among those of the exact law; with another law they would refute it."""
    (inc / "chains").write_bytes(sampled(inc, f"{options} --tau 0.7 --steps 3000"))
    record, = answer("exact -m inc.json --allow a,b,c --tau 0.7 --compare chains", TEXT, inc).of("exact")
    assert record["compare"]["p_value"] is None
    assert reason in record["compare"]["reason"]
    (inc / "chains").write_bytes(b"".join((inc / "chains").read_bytes().splitlines(keepends=True)[1:]))
    record, = answer("exact -m inc.json --allow a,b,c --tau 0.7 --compare chains", TEXT, inc).of("exact")
    assert "no run record" in record["compare"]["reason"]


def test_states_without_their_run_record_are_told_of_once(inc):
    states = b"".join(sampled(inc, "--tau 0.7 --steps 200").splitlines(keepends=True)[1:])
    for command in ("traps -m inc.json -s 3", "influence -m inc.json --seed 1"):
        done = answer(command, states, inc)
        assert done.status == 0
        assert len(re.findall("no run record came before", done.err)) == 1
        assert len(done.err.splitlines()) == 1
    assert answer("traps --no-model -s 3", states, inc).err == ""


def test_chains_of_two_laws_are_two_rows(inc):
    """The model, what may be drawn, what is frozen, the scan and the start; the temperature and length as ever."""
    command = "--tau 0.3 --steps 300"
    files = [sampled(inc, command), sampled(inc, f"{command} --allow a,b"), sampled(inc, f"{command} --freeze 2"),
             sampled(inc, f"{command} --scan systematic"), sampled(inc, f"{command} --start random"),
             answer("sample -m other.json --seed 1 --on-change --tau 0.3 --steps 300", TEXT, inc).out]
    groups = answer("traps --no-model -s 5 --summary", b"".join(files), inc).of("summary")
    assert [group["chains"] for group in groups] == [1] * 6
    assert {(g["model"], g.get("allow"), str(g.get("freeze")), g["scan"], g["init"]) for g in groups} == {
        ("inc.json", None, "None", "random", "text"), ("inc.json", "a,b", "None", "random", "text"),
        ("inc.json", None, "[2]", "random", "text"), ("inc.json", None, "None", "systematic", "text"),
        ("inc.json", None, "None", "random", "random"), ("other.json", None, "None", "random", "text")}
    again = answer("sample -m inc.json --seed 2 --on-change --tau 0.3 --steps 300", TEXT, inc).out
    group, = answer("traps --no-model -s 5 --summary", files[0] + again, inc).of("summary")
    assert (group["chains"], group["texts"]) == (2, 1)  # two seeds of one text are chains of one text
    bare = b"".join(files[0].splitlines(keepends=True)[1:])
    group, = answer("traps --no-model -s 5 --summary", bare, inc).of("summary")
    assert (group["model"], group["model_reason"]) == (None, "no run record")


@pytest.mark.parametrize("options", [
    {"scan": "odd"}, {"scan": ["random"]}, {"freeze": "0"}, {"freeze": [-1]}, {"freeze": [0.5]}, {"freeze": {"a": 1}},
    {"allow": 3}, {"allow": ["a"]}, {"init": 0}])
def test_odd_options_are_a_bad_record(inc, options):
    run = {"type": "run", "schema": "mlm/1", "run": "r", "command": "mlm-sample", "options": options}
    state = {"type": "state", "run": "r", "id": "t", "chain": 0, "step": 0, "tau": 1.0, "ids": [0, 0, 0]}
    runs = Runs()
    runs.take(run)
    with pytest.raises(RecordError, match="mlm-sample does not write"):
        runs.of(state)
    lines = b"".join(orjson.dumps(one) + b"\n" for one in (run, state, state | {"step": 200}))
    for command in ("traps -m inc.json", "traps --no-model", "influence -m inc.json", "traps -m inc.json --find"):
        done = answer(command, lines, inc)
        assert done.status == 65
        assert "Traceback" not in done.err


def test_runs_that_made_no_chain_and_other_things_in_their_place():
    runs = Runs()
    for record in ({"type": "run", "run": "r", "command": "mlm-embed", "model": "m"}, {"type": "run", "run": 3},
                   {"type": "run"}, {"type": "run", "run": ["r"], "command": "mlm-sample"}):
        runs.take(record)
    assert runs.records == {}
    for name in ("r", 3, None, ["r"]):
        found = runs.of({"type": "state", "run": name})
        assert (found.known, found.law, found.scan, found.free_sites(2)) == (False, UNKNOWN, "random", (0, 1))
    runs.take({"type": "run", "run": "r", "command": "mlm-sample", "tau": 0.5, "options": None, "model": "m"})
    found = runs.of({"type": "state", "run": "r"})
    assert found.law == ChainLaw("m", scan="random", init="text")
    assert found.tau_of({}) == 0.5
    assert found.tau_of({"tau": 2}) == 2.0
    for tau in ("hot", -1, float("nan"), True):
        with pytest.raises(RecordError, match="not a temperature"):
            found.tau_of({"tau": tau})


def test_every_block_for_a_worker_brings_the_run_records_before_it(inc):
    """Blocks of --dask are lines; the run record stands in the first one alone. One worker answers as one process."""
    chains = sampled(inc, "--allow a,b --freeze 2 --tau 0.7 --steps 120", b'{"id":"t","text":"b a c"}\n')
    (inc / "chains").write_bytes(chains)
    io = Filter(CollectingReporter("mlm-influence", True), (str(inc / "chains"),), False, CollectedOutput())
    blocks = _Blocks(io, unique=False)
    found = []
    while (block := blocks.next(wait=True)) is not None:
        found.append(block)
    assert len(found) > 2
    assert [[run["command"] for run in block.runs] for block in found] == [["mlm-sample"]] * len(found)
    spread = answer("influence -m inc.json --seed 1 --dask local:1", chains, inc)
    assert (spread.status, spread.of("influence")) == (0, answer("influence -m inc.json --seed 1", chains,
                                                                  inc).of("influence"))
