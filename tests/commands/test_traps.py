"""mlm-traps through a real shell: chains of tables whose escapes are known, and records written by hand."""

import numpy as np
import orjson
import pytest
from conftest import ROOT
from oracles import TABLE_A

from mlmglauber.measures.traps.margins import margins, site_rows
from mlmglauber.models.conditionals import TableConditional

pytestmark = pytest.mark.in_process

WELLS = [[[[0.99, 0.01], [0.5, 0.5]], [[0.5, 0.5], [0.02, 0.98]]]] * 3
"""Three sites that like to agree: aaa and bbb are perfect traps, left with chances 0.01 and 0.02."""


@pytest.fixture
def wells(sh):
    (sh.folder / "w.json").write_bytes(orjson.dumps({"tokens": ["a", "b"], "tables": WELLS}))
    return sh.folder


def chain(states, name="a", number=0, **fields):
    """On-change records of (step, ids) pairs, each one update after the one before, and their last step unchanged."""
    lines, before = [], None
    for step, ids in states:
        line = {"type": "state", "run": "r", "id": name, "chain": number, "step": step, "tau": 0.5, "n": len(ids),
                "text": " ".join(map(str, ids)), "ids": list(ids), **fields}
        if before is not None:
            sites = [k for k, (x, y) in enumerate(zip(before, ids, strict=True)) if x != y] or [0]
            line |= {"site": sites[0], "old": before[sites[0]], "new": ids[sites[0]], "changed": before != ids}
        lines.append(line)
        before = ids
    return lines


def text(*lines):
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def of(done, kind="trap"):
    return [record for record in done.records if record["type"] == kind]


STUCK = [(0, (5, 5)), (3, (5, 6)), (53, (5, 7)), (60, (5, 6)), (90, (4, 6)), (99, (4, 7)), (110, (4, 7))]


def test_traps_of_records_without_a_model(sh):
    done = sh("mlm-traps --no-model --min-steps 20 -r 1", stdin=text(*chain(STUCK, topic="x", embedding=[1])))
    assert (done.status, done.err) == (0, "")
    trap, = done.records
    assert {key: trap[key] for key in ("type", "run", "id", "chain", "tau", "n", "first", "last", "residence")} == {
        "type": "trap", "run": "r", "id": "a", "chain": 0, "tau": 0.5, "n": 2, "first": 3, "last": 89, "residence": 87}
    assert (trap["text"], trap["ids"], trap["share"], trap["visits"]) == ("5 6", [5, 6], 80 / 87, 2)
    assert trap["flicker"] == [{"site": 1, "share": 7 / 87, "token": 7}]
    assert (trap["resolution"], trap["censored"], trap["cut"], trap["topic"]) == (1, False, False, "x")
    assert (trap["kind"], trap["margin"], trap["reason"]) == (None, None, "no model")
    assert "embedding" not in trap
    stays = of(sh("mlm-traps --no-model --min-steps 20 -r 0", stdin=text(*chain(STUCK))))
    assert [(stay["first"], stay["residence"]) for stay in stays] == [(3, 50), (60, 30)]


def test_of_two_coupled_chains_one_counts_in_a_summary(sh):
    """As mlm-couple --every writes them: equal after their meeting. Trap records are of both."""
    pairs = [chain(STUCK, name, number, coupled="x+y") for name in ("p", "q") for number in range(2)]
    lines = text(*(line for lines in pairs for line in lines))
    assert len(of(sh("mlm-traps --no-model --min-steps 20 -r 1", stdin=lines))) == 4
    done = sh("mlm-traps --no-model --min-steps 20 -r 1 --summary --no-table", stdin=lines)
    assert [(group["chains"], group["texts"], group["count"]) for group in done.records] == [(2, 1, 2)]
    assert "2 chains left out of the summaries: coupled with one that counts" in done.err


def test_interleaved_chains_are_those_of_files_one_after_the_other(sh):
    chains = [chain(STUCK, name, number) for name in "ab" for number in (0, 1)]
    apart = sh("mlm-traps --no-model -s 20", stdin=text(*(line for lines in chains for line in lines)))
    mixed = sorted((line for lines in chains for line in lines), key=lambda line: line["step"])
    together = sh("mlm-traps --no-model -s 20", stdin=text(*mixed))

    def key(record):
        return record["id"], record["chain"], record["first"]

    assert sorted(together.records, key=key) == sorted(apart.records, key=key)
    assert len(apart.records) == 4


def test_every_state_and_every_change_tell_the_same(sh, wells):
    command = "printf 'a a a\\nb b a\\n' | mlm-sample -m w.json --steps 3000 -c 2 --seed 3"
    changes = of(sh(f"{command} --on-change | mlm-traps --no-model -s 30"))
    every = of(sh(f"{command} --every 1 | mlm-traps --no-model -s 30"))
    assert len(changes) > 20
    for one, other in zip(changes, every, strict=True):
        assert one | {"run": ""} == other | {"run": ""}
        assert one["resolution"] == 1


def test_thin_records_are_marked(sh, wells):
    command = "echo 'a a a' | mlm-sample -m w.json --steps 3000 --seed 3"
    thin = of(sh(f"{command} --every 5 | mlm-traps -m w.json -r 0 -s 30"))
    assert len(thin) > 5
    assert {trap["resolution"] for trap in thin} == {5}
    assert {trap["ratio_reason"] for trap in thin} == {"stays are not seen at full resolution"}
    without_run = of(sh(f"{command} --every 5 | grep -v '\"type\":\"run\"' | mlm-traps --no-model -r 0 -s 30"))
    assert {trap["resolution"] for trap in without_run} == {5}
    changes = of(sh(f"{command} --on-change | grep -v '\"type\":\"run\"' | mlm-traps --no-model -r 0 -s 30"))
    assert {trap["resolution"] for trap in changes} == {1}
    # a change that its record does not explain, and one record left out of many
    jump = [*chain(STUCK)[:2], chain([(53, (5, 7)), (60, (9, 7))])[1], *chain([(60, (9, 7)), (200, (9, 8))])[1:]]
    trap, = of(sh("mlm-traps --no-model -s 20 -r 0", stdin=text(*jump[:3], *jump[3:])))[:1]
    assert (trap["first"], trap["resolution"]) == (3, 57)


def test_margins_escape_and_residence_are_those_of_the_table(sh, wells):
    done = sh("echo 'a a a' | mlm-sample -m w.json --steps 20000 --on-change --seed 3 |"
              "mlm-traps -m w.json -r 0 -s 100")
    assert (done.status, done.err) == (0, "")
    upstream, ours = of(done, "run")
    assert (ours["command"], ours["hash"], ours["options"]["min_steps"]) == ("mlm-traps", upstream["hash"], 100)
    traps = of(done)
    assert {trap["text"] for trap in traps} == {"a a a", "b b b"}
    table = TableConditional(WELLS)
    for trap in traps:
        exact = margins(site_rows(table, np.array(trap["ids"]), np.arange(3)), np.array(trap["ids"]), 1.0, 2)
        assert (trap["kind"], trap["argmax"], trap["margins_run"]) == ("perfect", 1, ours["run"])
        assert trap["gamma"] == pytest.approx(exact.gamma.tolist())
        assert [trap[key] for key in ("margin", "escape", "expected", "bound", "pll", "entropy")] == pytest.approx(
            [exact.margin, exact.escape, exact.residence, exact.bound, exact.pll, exact.entropy])
        assert trap["escape"] <= trap["bound"]
        if not trap["censored"]:
            assert trap["ratio"] == pytest.approx((trap["residence"] - 99) * trap["escape"])
            assert trap["ratio_low"] < trap["ratio"] < trap["ratio_high"]
    # 95 % intervals of independent stays: of 40 or more, fewer than 7 in 8 hold the truth with chance 0.01
    inside = [trap["ratio_low"] <= 1 <= trap["ratio_high"] for trap in traps if not trap["censored"]]
    assert len(inside) > 40
    assert np.mean(inside) > 7 / 8


def test_an_approximate_trap_is_told_from_a_perfect_one(sh, tables):
    states = chain([(0, (0, 1)), (50, (0, 0)), (90, (1, 0)), (91, (1, 0))], tau=1.0)
    first, second = of(sh("mlm-traps -m a.json -r 0 -s 20", stdin=text(*states)))
    assert (first["kind"], first["argmax"], first["margin"]) == ("approximate", 0, pytest.approx(np.log(0.2 / 0.5)))
    assert (second["kind"], second["escape"], second["expected"]) == ("perfect", pytest.approx(0.35),
                                                                      pytest.approx(2.857143))


def test_frozen_sites_and_other_scans_are_taken_from_the_run_record(sh, wells):
    command = "echo 'a a a' | mlm-sample -m w.json --steps 3000 --on-change --seed 3"
    frozen = of(sh(f"{command} --freeze 2 | mlm-traps -m w.json -r 0 -s 50"))
    assert {len(trap["gamma"]) for trap in frozen} == {2}
    assert {round(trap["escape"], 9) for trap in frozen} == {0.01}
    scanned = of(sh(f"{command} --scan systematic | mlm-traps -m w.json -r 0 -s 50"))
    assert {(trap["ratio"], trap["ratio_reason"]) for trap in scanned} == {(None, "the scan is systematic")}
    assert {round(trap["escape"], 9) for trap in scanned} == {0.01, 0.02}


def test_the_model_must_be_the_one_that_made_the_chains(sh, wells):
    (wells / "v.json").write_bytes((wells / "w.json").read_bytes().replace(b"0.99", b"0.98").replace(b"0.01", b"0.02"))
    done = sh("echo 'a a a' | mlm-sample -m w.json --steps 2000 --on-change --seed 3 | mlm-traps -m v.json -s 20")
    assert done.status == 2
    assert "was made with the model w.json" in done.err
    assert "-m" in done.err
    (wells / "x.json").write_bytes((wells / "w.json").read_bytes())  # another name, the same weights
    assert sh("echo 'a a a' | mlm-sample -m w.json --steps 2000 --on-change --seed 3 | mlm-traps -m x.json -s 20"
              ).status == 0


def test_bad_records_are_told(sh, tables):
    good = chain(STUCK)
    bad = [{**good[1], "ids": "x"}, {**good[1], "ids": []}, {**good[1], "step": None}, {**good[2], "step": 2},
           {**good[2], "ids": [1, 2, 3]}, {**good[0], "id": "z", "tau": "hot"}]
    done = sh("mlm-traps --no-model -s 20", stdin=text(*good[:2], *bad, *good[2:]))
    assert done.status == 65
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [f"stdin:{k}" for k in range(3, 9)]
    assert done.records == sh("mlm-traps --no-model -s 20", stdin=text(*good)).records
    outside = sh("mlm-traps -m a.json -s 20", stdin=text(*good))
    assert outside.status == 65
    assert "outside the table's 3 tokens" in outside.err
    never = sh("mlm-traps --no-model -s 20 --tau 1 --find", stdin=b"a b\n")
    assert never.status == 2


def test_summary_by_hand(sh, wells):
    again = [(0, (1, 1)), (40, (1, 0)), (41, (1, 1)), (101, (1, 0)), (102, (0, 0)), (110, (0, 0))]
    lines = [*chain(again, "a", 0), *chain(again, "b", 0), *chain([(0, (0, 1)), (10, (1, 1)), (60, (1, 1))], "b", 1)]
    group, = sh("mlm-traps --no-model --summary -r 0 -s 40", stdin=text(*lines)).records
    assert (group["of"], group["over"], group["tau"], group["n"]) == ("trap", "group", 0.5, 2)
    assert (group["chains"], group["texts"], group["chains_trapped"], group["steps"]) == (3, 2, 3, 280)
    assert (group["count"], group["censored"], group["longest"]) == (5, 1, 60)
    assert group["trapped"] == pytest.approx((2 * 100 + 50) / 280)
    assert group["per_1000"] == pytest.approx(5000 / 280)
    assert group["residence"] == {"0.05": 40.0, "0.25": 40.0, "0.5": 60.0, "0.75": 60.0, "0.95": 60.0}
    assert (group["distinct"], group["recurring_states"], group["shared_states"]) == (1, 1, 1)
    assert group["recurring"] == [{"text": "1 1", "ids": [1, 1], "traps": 5, "steps": 250, "chains": 3, "texts": 2,
                                   "margin": None}]
    assert (group["perfect"], group["ratio"], group["reason"]) == (None, None, "no model")


def test_the_summary_of_two_wells(sh, wells):
    done = sh("printf 'a a a\\n%.0s' 1 2 3 4 5 | mlm-sample -m w.json --steps 20000 -t 0.5,1 --on-change --seed 3 |"
              "mlm-traps -m w.json -r 0 -s 50 --summary")
    assert done.status == 0
    head, cold, hot, _ = done.records
    assert (head["type"], head["command"]) == ("run", "mlm-traps")
    assert [(group["tau"], group["n"]) for group in (cold, hot)] == [(0.5, 3), (1.0, 3)]
    assert cold["trapped"] > 0.99 > hot["trapped"] > 0.5
    for group in (cold, hot):
        assert group["perfect"] == 1
        assert group["ratio_low"] < 1 < group["ratio_high"]  # two 95 % intervals, seed fixed
        assert group["ratio_high"] / group["ratio_low"] < 5
        assert {place["text"] for place in group["recurring"]} <= {"a a a", "b b b"}
    table = sh("echo 'a a a' | mlm-sample -m w.json --steps 2000 --on-change --seed 3 |"
               "mlm-traps -m w.json -s 50 --summary --table").out.decode()
    assert "time trapped" in table
    assert "\x1b" not in table
    nothing, = of(sh("echo 'a a a' | mlm-sample -m w.json --steps 20 --on-change --seed 3 |"
                     "mlm-traps -m w.json -s 50 --summary"), "summary")
    assert (nothing["count"], nothing["trapped"], nothing["reason"]) == (0, 0.0, "no trap")


def test_find_fixed_points_with_their_basins(sh, tables):
    starts = "".join(f'{{"id":"{a}{b}","text":"{a} {b}"}}\n' for a in "abc" for b in "abc")
    done = sh("mlm-traps --find -m a.json --tau 0.5,1", stdin=starts.encode())
    assert (done.status, done.err) == (0, "")
    head, *traps = done.records
    assert head["options"]["find"]
    assert sum(trap["basin_count"] for trap in traps) == 9
    # site 0 first: it takes the likeliest letter given site 1, and site 1 follows
    assert {trap["text"]: sorted(trap["starts"]) for trap in traps} == {
        "a a": ["aa", "ba", "ca"], "b b": ["ab", "bb", "cb"], "c c": ["ac", "bc", "cc"]}
    for trap in traps:
        assert (trap["found"], trap["kind"], trap["n"], trap["sweeps"]) == ("fixed_point", "perfect", 2, 1)
        assert [at["tau"] for at in trap["at"]] == [0.5, 1.0]
        assert trap["at"][1]["escape"] == pytest.approx(0.35)
    tables_margins = sorted(np.log([0.7 / 0.2, 0.6 / 0.3]).min() if trap["text"] == "a a" else trap["margin"]
                            for trap in traps)
    assert tables_margins == pytest.approx(sorted([0.693147, 0.510826, 0.693147]), abs=1e-6)
    assert TABLE_A[0][0][0] == 0.7
    summary = sh("mlm-traps --find --summary -m a.json", stdin=starts.encode()).records[-1]
    assert (summary["over"], summary["count"], summary["fixed_points"], summary["cycles"]) == ("starts", 9, 3, 0)
    assert summary["margin"]["0"] == pytest.approx(0.510826, abs=1e-6)


def test_find_cycles_which_no_joint_law_has(sh):
    # site 0 copies site 1, site 1 does the opposite of site 0: nothing is ever settled
    chase = [[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]]
    (sh.folder / "c.json").write_bytes(orjson.dumps({"tokens": ["a", "b"], "tables": chase}))
    done = sh("mlm-traps --find -m c.json", stdin=b"a a\na b\nb a\nb b\n")
    trap, = of(done)
    assert (trap["found"], trap["basin_count"], trap["period"], trap["kind"]) == ("cycle", 4, 2, "approximate")
    assert trap["cycle"] == ["a b", "b a"]
    short = sh("mlm-traps --find --max-sweeps 1 -m c.json", stdin=b"a a\n")
    assert (short.status, of(short)) == (0, [])
    assert "1 text reached no attractor in" in short.err


def test_find_on_the_bundled_model(sh):
    lines = (ROOT / "examples" / "passages.jsonl").read_bytes().splitlines(keepends=True)[2:5]
    done = sh("mlm-traps --find --length 8 --tau 0.5", stdin=b"".join(lines))
    assert (done.status, done.err) == (0, "")
    fixed = [trap for trap in of(done) if trap["found"] == "fixed_point"]
    assert fixed
    for trap in fixed:
        assert (trap["argmax"], trap["kind"], trap["n"]) == (1, "perfect", 8)
        assert trap["margin"] > 0
        assert trap["at"][0]["expected"] == pytest.approx(1 / trap["at"][0]["escape"])
        at = trap["at"][0]
        assert at["bound"] is None or at["escape"] <= at["bound"] < 1
        assert ("bound_reason" in at) == (at["bound"] is None)


def test_the_basin_of_a_trap_and_what_it_cannot_tell(sh, wells):
    """Of one state with a demanding least chance; a large one has more exits to count, none where all states are in."""
    command = "echo 'a a a' | mlm-sample -m w.json --steps 2000 --on-change --seed 3 | mlm-traps -m w.json -r 0 -s 100"
    alone = of(sh(f"{command} --basin 0.9"))
    assert alone
    for trap in alone:
        basin = trap["basin"]
        assert (basin["least"], basin["states"]) == (0.9, 1)
        assert [basin[key] for key in ("margin", "escape", "expected", "bound")] == pytest.approx(
            [trap[key] for key in ("margin", "escape", "expected", "bound")])
    whole = of(sh(f"{command} --basin 0.001"))[0]["basin"]
    assert (whole["states"], whole["margin"], whole["escape"], whole["expected"]) == (8, None, 0, None)
    assert (whole["margin_reason"], whole["expected_reason"]) == ("no step leaves the set", "the set is never left")
    found = of(sh("mlm-traps --find -m w.json --basin 0.9 --tau 0.5,1", stdin=b"a a a\n"))[0]
    assert [at["basin"]["expected"] for at in found["at"]] == pytest.approx([at["expected"] for at in found["at"]])


def test_bounds_of_1_and_above_are_null_with_the_reason(sh):
    """A margin at a warm temperature and one of 0 tell nothing, of a state and of a basin."""
    (sh.folder / "t.json").write_bytes((ROOT / "tests" / "tables" / "tie.json").read_bytes())
    tokens = orjson.loads((sh.folder / "t.json").read_bytes())["tokens"]
    text = " ".join([tokens[0]] * len(orjson.loads((sh.folder / "t.json").read_bytes())["tables"]))
    trap = of(sh("mlm-traps --find -m t.json --tau 0,0.001,1 --basin 1", stdin=text.encode()))[0]
    assert (trap["margin"], trap["kind"], trap["argmax"]) == (0, "approximate", 1)
    assert trap["ties"] > 0
    for at in trap["at"]:
        assert (at["bound"], at["bound_reason"]) == (None, "it is 1 or above and says nothing")
    assert trap["at"][0]["escape"] == 0
    assert trap["at"][1]["escape"] > 0.2  # half of the time at each tied site: margin 0 does not hold a state


def test_which_tokens_hold_each_other_on_the_bundled_model(sh):
    """Against the model asked with two masks by hand; a table has no mask."""
    from mlmglauber.models.opening import open_model

    trap = of(sh("mlm-traps --find --length 6 --support", stdin=(
        ROOT / "examples" / "passages.jsonl").read_bytes().splitlines(keepends=True)[2]))[0]
    model, ids = open_model("tiny-en"), np.array(trap["ids"])
    base = model.log_probs(np.repeat([ids], 6, axis=0), np.arange(6))
    for i, j in ((0, 1), (1, 0), (5, 2)):
        hidden = ids.copy()
        hidden[j] = model.mask_id
        drop = base[i, ids[i]] - model.log_probs(hidden[None], np.array([i]))[0, ids[i]]
        assert trap["support"][i][j] == pytest.approx(drop, abs=1e-4)
    assert [trap["support"][k][k] for k in range(6)] == [0] * 6
    (sh.folder / "w.json").write_bytes(orjson.dumps({"tokens": ["a", "b"], "tables": WELLS}))
    table = of(sh("mlm-traps --find --support -m w.json", stdin=b"a a a\n"))[0]
    assert (table["support"], table["support_reason"][:27]) == (None, "the model has no mask token")


def test_basins_and_support_need_trap_records_and_a_model(sh):
    for options in ("--no-model --support", "--summary --basin 0.1", "--certify a --support",
                    "--find --summary --support"):
        done = sh(f"mlm-traps {options}", stdin=b"")
        assert done.status == 2
        assert "--basin and --support add to trap records" in done.err


def test_the_name_of_a_mode_gives_the_records_of_the_older_form(sh, wells):
    texts = b"a b a\nb b b\na a b\n"
    states = sh("mlm-sample -m w.json --tau 0.5 --steps 400 --on-change --seed 1", stdin=texts).out
    pairs = [("chains --min-steps 5", "--min-steps 5", states), ("find --tau 0.5", "--find --tau 0.5", texts),
             ("find --summary", "--find --summarize", texts),
             ("certify --token a --seed 1", "--certify a --seed 1", texts),
             ("certify --certify a --seed 1", "--certify a --seed 1", texts),
             ("certify --scan-tokens 1 --seed 1", "--scan-tokens 1 --seed 1", texts)]
    for new, old, content in pairs:
        one, other = sh(f"mlm-traps {new} -m w.json", stdin=content), sh(f"mlm-traps {old} -m w.json", stdin=content)
        assert one == other
        assert (one.status, one.err) == (0, "")
        assert len(one.records) > 1 or "--summary" in new
    (wells / "texts").write_bytes(texts)
    assert sh("mlm-traps find -m w.json texts") == sh("mlm-traps --find -m w.json texts")


def test_a_mode_has_the_help_and_the_options_of_its_own(sh, wells):
    own = {"": "--radius", "chains": "--radius", "find": "--max-sweeps", "certify": "--contexts"}
    for mode, option in own.items():
        text = sh(f"mlm-traps {mode} --help").out.decode()
        assert option in text
        for other in {"--radius", "--max-sweeps", "--contexts"} - {option}:
            assert other not in text
        assert ("Modes:" in text) == (mode == "")
        for shared in ("--model", "--output", "--help", "Examples:"):
            assert shared in text
    for command, words in (("find --radius 2", "--radius is an option of 'mlm-traps chains'; leave it out"),
                           ("chains --tau 1", "--tau is an option of 'mlm-traps find' and 'mlm-traps certify'"),
                           ("chains --find", "--find is an option of 'mlm-traps' without a mode"),
                           ("certify --seed 1", "nothing to do; give --token or --scan-tokens")):
        done = sh(f"mlm-traps {command} -m w.json", stdin=b"a b a\n")
        assert (done.status, done.out) == (2, b"")
        assert words in done.err
        assert f"Try 'mlm-traps {command.split()[0]} --help'." in done.err


def test_a_file_with_the_name_of_a_mode_is_a_file_and_a_misplaced_name_is_reported(sh, wells):
    late = sh("mlm-traps -m w.json find", stdin=b"a b a\n")
    assert late.status == 2
    assert "no file is named find; for the mode find write 'mlm-traps find' first" in late.err
    (wells / "find").write_bytes(text(*chain(STUCK)))
    of_file = sh("mlm-traps find --no-model --min-steps 20")
    assert of_file == sh("mlm-traps --no-model --min-steps 20 < find")
    assert len(of(of_file)) == 1
