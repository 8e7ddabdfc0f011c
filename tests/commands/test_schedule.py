"""--schedule: states carry the temperature of their step, a resumed file is the same, and readers group by pieces."""

import numpy as np
import orjson
import pytest

from mlmglauber.pictures.drift import items, picture

pytestmark = [pytest.mark.in_process, pytest.mark.usefixtures("tables")]

SCHEDULE = "2@21,1>0.2@14,0.2@35,0.5"
STARTS = (0, 21, 35, 70)
"""The steps at which its pieces begin."""
RUN = f"mlm-sample -m a.json --seed 3 --schedule '{SCHEDULE}' --chains 2 --steps 140"
OUTPUTS = ("--on-change", "--every 1", "--every 7")


def test_states_carry_the_temperature_of_their_step(sh):
    run, *states = sh(f"echo 'a b' | {RUN} --every 1").records
    assert (run["tau"], run["tau_reason"], run["schedule"]) == (None, "it changes by the schedule", SCHEDULE)
    assert run["options"]["schedule"] == SCHEDULE
    taus = [2.0] * 22 + np.linspace(1, 0.2, 14).tolist() + [0.2] * 35 + [0.5] * 70
    for chain in (0, 1):
        assert [state["tau"] for state in states if state["chain"] == chain] == pytest.approx(taus, abs=1e-15)
    assert "schedule" not in sh("echo 'a b' | mlm-sample -m a.json --seed 3 --steps 2").records[0]["options"]


def test_one_piece_is_the_chain_of_that_temperature(sh):
    scheduled, plain = (sh(f"echo 'a b' | mlm-sample -m a.json --seed 3 {option} 0.7 --steps 200 --every 1").states
                        for option in ("--schedule", "--tau"))
    assert [state | {"run": ""} for state in scheduled] == [state | {"run": ""} for state in plain]


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_plain_engine_writes_the_same_bytes(sh, output):
    (sh.folder / "in").write_text("a b\nc c\nb a\n")
    line = f"{RUN} {output} --burn-in 3 --scan systematic"
    whole = sh(f"{line} in").out
    assert sh(f"{line} --engine plain in").out == whole
    assert sh(f"{line} --cache-mb 0 in").out == whole
    assert sh(f"{line} --batch-size 1 in").states == [orjson.loads(state) for state in whole.splitlines()[1:]]


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_file_that_is_cut_anywhere_resumes_to_the_same_bytes(sh, output):
    (sh.folder / "in").write_text("a b\nc c\n")
    whole = sh(f"{RUN} {output} in").out
    lines = [k + 1 for k, byte in enumerate(whole) if byte == 10]
    random = np.random.default_rng(2)
    for cut in [*lines[:: 9 if len(lines) > 90 else 3], *random.integers(0, len(whole), 6)]:
        (sh.folder / "part").write_bytes(whole[:cut])
        assert sh(f"{RUN} {output} --resume part in").status == 0
        assert (sh.folder / "part").read_bytes() == whole, f"cut at {cut} of {len(whole)} bytes"
    assert "schedule" in sh(f"{RUN.replace('0.5', '0.6')} {output} --resume part in").err


def test_a_run_is_repeated_from_its_records(sh):
    whole = sh(f"echo 'a b' | {RUN} --on-change | tee run").out
    assert sh("echo 'a b' | mlm-sample --from-run run").out == whole
    assert sh("echo 'a b' | mlm-sample --from-run run --check").status == 0


def test_the_default_length_runs_through_the_schedule(sh):
    def last(options):
        done = sh(f"echo 'a b' | mlm-sample -m a.json --seed 1 {options}")
        return done.states[-1]["step"], done.err

    assert last("--schedule '2@30,1@30'") == (60, "")
    assert last("--schedule '2@30,1'") == (230, "")
    assert last("--schedule '2@30,1@30' --burn-in 70") == (70, "")
    assert last("--schedule '2@30,1' --sweeps 20") == (40, "")
    assert last("--schedule '2@30,1@30' --sweeps 20") == (
        40, "mlm-sample: the chains of 1 text end before step 60, at which --schedule does; raise --steps or "
            "--sweeps\n")
    table = sh("echo 'a b' | mlm-sample -m a.json --seed 1 --schedule '2@30,1@30' --csv").out.decode()
    assert table.splitlines()[-1].startswith(",2,1,1,60,")


@pytest.mark.parametrize(("options", "reason"), [
    ("--schedule 2@5,1 --tau 0.5", "--schedule gives the temperatures; leave --tau out"),
    ("--schedule 2@5,1 -t 0.5,1", "--schedule gives the temperatures; leave --tau out"),
    ("--schedule 2,1", "'2' has no number of steps"), ("--schedule '2>1'", "is a ramp"),
    ("--schedule 2@5 --schedule 1@5", "is given twice"), ("--schedule hot", "is not a temperature")])
def test_what_is_no_schedule_is_a_usage_error(sh, options, reason):
    done = sh(f"echo 'a b' | mlm-sample -m a.json {options}")
    assert (done.status, done.out) == (2, b"")
    assert reason in done.err


@pytest.mark.parametrize("command", ["couple", "exact --top 2", "rect"])
def test_other_commands_have_no_schedule(sh, command):
    assert sh(f"echo 'a b' | mlm-{command} -m a.json --schedule 2@5,1").status == 2


def embedded(records):
    """The records with an embedding in each state: a unit vector whose angle depends on the tokens."""
    for record in records:
        if record["type"] == "state":
            angle = 0.4 * record["ids"][0] + 1.1 * record["ids"][1]
            record |= {"embedding": [float(np.cos(angle)), float(np.sin(angle))], "embedder": "angle"}
    return records


def pieces_of(records):
    """For each piece of SCHEDULE the records of a run that begins in its first state, with steps from 0 on."""
    run, *states = records
    shows_all = run["options"]["on_change"]
    for k, start in enumerate(STARTS):
        end = STARTS[k + 1] if k + 1 < len(STARTS) else 140
        part = [run | {"schedule": None, "options": run["options"] | {"schedule": None}, "tau": 1}]
        for chain in (0, 1):
            mine = [state for state in states if state["chain"] == chain]
            inside = [state for state in mine if start < state["step"] <= end]
            before = [state for state in mine if state["step"] <= start][-1]
            if shows_all or before["step"] == start:
                inside.insert(0, before | {"step": start})
            if shows_all and inside[-1]["step"] < end:
                inside.append(inside[-1] | {"step": end, "changed": False})
            part += [state | {"step": state["step"] - start, "tau": 1} for state in inside]
        yield k, start, part


def to_lines(records):
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


LAW = ("schedule", "piece", "tau", "tau_reason")


@pytest.mark.parametrize("output", OUTPUTS)
def test_drift_summarises_each_piece_as_a_chain_that_begins_there(sh, output):
    records = embedded(sh(f"echo 'a b' | {RUN} {output}").records)
    (sh.folder / "reference").write_text('{"embedding":[1,0],"embedder":"angle"}\n')
    line = "mlm-drift --summary --reference reference --threshold 0.3,1.2"
    summaries = sh(line, stdin=to_lines(records)).records
    of_chains = [one for one in summaries if one["over"] == "chain"]
    assert sorted((one["piece"], one["chain"]) for one in of_chains) == [(k, c) for k in range(4) for c in (0, 1)]
    assert [one["tau"] for one in summaries if one["over"] == "group"] == [2.0, None, 0.2, 0.5]
    assert [one.get("tau_reason") for one in summaries if one["over"] == "tau"] == [
        None, "it changes along the ramp", None, None]
    for piece, start, part in pieces_of(records):
        expected = sh(line, stdin=to_lines(part)).records
        found = [one for one in summaries if one["piece"] == piece]
        for mine, theirs in zip(sorted(found, key=lambda one: (one["over"], one.get("chain", 0))),
                                sorted(expected, key=lambda one: (one["over"], one.get("chain", 0))), strict=True):
            assert (mine["schedule"], mine["piece"]) == (SCHEDULE, piece)
            for name in ("first_step", "last_step"):
                if name in mine:
                    mine[name] -= start
            if mine["over"] == "group":  # the common reference is the first one of the whole chain
                mine["diagnostics"] = theirs["diagnostics"] = None
            assert {k: v for k, v in mine.items() if k not in LAW} == {
                k: v for k, v in theirs.items() if k not in LAW}, (piece, mine["over"])


@pytest.mark.parametrize("output", OUTPUTS)
def test_traps_belong_to_one_piece(sh, output):
    records = sh(f"echo 'a b' | {RUN} {output}").records
    line = "mlm-traps -m a.json --min-steps 3 --radius 0 --no-model"
    traps = [one for one in sh(line, stdin=to_lines(records)).records if one["type"] == "trap"]
    assert any(trap["censored"] and trap["last"] in STARTS for trap in traps)
    for piece, start, part in pieces_of(records):
        expected = [one for one in sh(line, stdin=to_lines(part)).records if one["type"] == "trap"]
        found = [one for one in traps if one["piece"] == piece]
        key = lambda trap: (trap["chain"], trap["first"])  # noqa: E731
        for mine, theirs in zip(sorted(found, key=key), sorted(expected, key=key), strict=True):
            mine |= {"first": mine["first"] - start, "last": mine["last"] - start}
            if output == "--every 7":
                mine["resolution"] = theirs["resolution"]
            assert {k: v for k, v in mine.items() if k not in LAW} == {k: v for k, v in theirs.items() if k not in LAW}


def test_trap_margins_are_those_of_the_temperature_of_the_piece(sh):
    records = sh(f"echo 'a b' | {RUN} --on-change").records
    traps = [one for one in sh("mlm-traps -m a.json --min-steps 3", stdin=to_lines(records)).records
             if one["type"] == "trap"]
    cold, ramp = ([trap for trap in traps if trap["piece"] == piece] for piece in (2, 1))
    assert cold
    assert ramp
    alone = sh("echo 'a b' | mlm-sample -m a.json -t 0.2 --seed 1 --steps 2000 --on-change | "
               "mlm-traps -m a.json --min-steps 3").records
    escapes = {tuple(trap["ids"]): trap["escape"] for trap in alone if trap["type"] == "trap"}
    for trap in cold:
        assert trap["escape"] == pytest.approx(escapes[tuple(trap["ids"])], rel=1e-12)
    assert {trap["reason"] for trap in ramp} == {"the temperature changes along a ramp"}
    summaries = sh("mlm-traps -m a.json --min-steps 3 --summary", stdin=to_lines(records)).records[1:]
    assert [(one["over"], one["piece"], one["tau"], one["chains"], one["steps"]) for one in summaries] == [
        ("group", k, tau, 2, 2 * steps) for k, (tau, steps) in enumerate([(2.0, 21), (None, 14), (0.2, 35), (0.5, 70)])]


def test_a_temperature_that_changes_without_a_run_record_is_a_bad_record(sh):
    states = embedded(sh(f"echo 'a b' | {RUN} --every 7").states)
    done = sh("mlm-drift --summary", stdin=to_lines(states))
    assert done.status == 65
    assert "no run record with a schedule came before it" in done.err
    assert sh("mlm-traps --no-model", stdin=to_lines(states)).status == 65


def test_what_has_no_meaning_for_a_schedule_says_so(sh):
    (sh.folder / "chains").write_bytes(sh(f"echo 'a b' | {RUN} --every 1").out)
    production = sh("mlm-rect --path chains").records[0]
    assert (production["entropy_production"], production["production_reason"]) == (None, "changing_temperature")
    exact = sh("echo 'a b' | mlm-exact -m a.json --allow a,b,c -t 0.5 --compare chains").records[1]
    assert "changes its temperature" in exact["compare"]["reason"]


def test_a_run_record_with_a_broken_schedule_is_a_bad_record(sh):
    run, *states = embedded(sh(f"echo 'a b' | {RUN} --every 7").records)
    run["options"]["schedule"] = "2,1"
    done = sh("mlm-drift --summary", stdin=to_lines([run, *states]))
    assert done.status == 65
    assert "tau, schedule, allow" in done.err


def test_shown_states_say_the_temperature_that_they_have_now(sh):
    lines = sh(f"echo 'a b' | {RUN} --every 35 | mlm-show").out.decode().splitlines()
    assert sum(line.startswith("0/0  tau 2  step") for line in lines) == 5
    assert any("now tau 0.2" in line for line in lines)


def test_a_dry_run_counts_the_steps_of_the_schedule(sh):
    done = sh("echo 'a b' | mlm-sample -m a.json --seed 3 --schedule '2@30,1' --chains 2 --dry-run --csv").out.decode()
    row, = (line.split(",") for line in done.splitlines() if line.startswith("steps"))
    assert row[1:3] == ["460", "460"]


def test_drift_of_a_schedule_is_drawn_as_one_curve():
    states = [{"type": "state", "run": "r", "id": "0", "chain": chain, "step": step, "n": 2, "drift": step / 10,
               "tau": 2.0 - 0.3 * step} for chain in (0, 1) for step in range(6)]
    kept = {}
    for key, item in (pair for state in states for pair in items(state)):
        kept.setdefault(key, []).append(item)
    panel, = picture(kept, 0.5).panels
    curve, _ = panel.layers
    assert (curve.label, len(curve.x)) == ("τ from 2 to 0.5", 6)
