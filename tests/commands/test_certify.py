"""mlm-traps --certify and --scan-tokens through a real shell, on tables where copies beget copies."""

import numpy as np
import orjson
import pytest
from oracles import COPIES, counting_table, site_kernels

pytestmark = pytest.mark.in_process


@pytest.fixture
def copies(sh):
    """c.json: six sites, tokens x and "!", which the other "!" call for; the table itself."""
    table = counting_table(COPIES)
    numbers = [law.tolist() for law in table.tables]
    (sh.folder / "c.json").write_bytes(orjson.dumps({"tokens": ["x", "!"], "tables": numbers}))
    return table


TEXT = b'{"id":"t","text":"x x x x x x"}\n'


def of(done, over):
    return [record for record in done.records if record.get("over") == over]


@pytest.mark.parametrize("draw", ["copies", "texts"])
def test_a_basin_of_copies_and_its_escape_time(sh, copies, draw):
    """The table is exchangeable, so every number is exact: it is compared with the kernel on all 64 states."""
    done = sh(f"mlm-traps --certify '!' -m c.json --seed 1 --contexts 5 --tau 1,0.7 --draw {draw}", stdin=TEXT)
    assert (done.status, done.err) == (0, "")
    assert done.records[0]["options"]["certify"] == ["!"]
    states, counts = copies.states(), copies.states().sum(axis=1)
    for found in of(done, "token"):
        kernel = site_kernels(copies, found["tau"]).mean(axis=0)
        assert (found["word"], found["token"], found["n"], found["contexts"]) == ("!", 1, 6, 5)
        drift = [(kernel[counts == k] @ counts - k).mean() for k in range(7)]
        assert [one["k"] for one in found["levels"]] == list(range(7))
        assert [one["drift"] for one in found["levels"]] == pytest.approx(drift)
        assert [one["exact"] for one in found["levels"]] == [False] * 6 + [True]
        assert found["growing"] == found["growing_all"]
        assert found["growing"][0][0] == 0
        threshold, stable = found["basin"]["threshold"], found["basin"]["stable"]
        assert drift[threshold - 1] <= 0 < drift[threshold]
        inside = counts >= threshold
        times = np.linalg.solve(np.eye(inside.sum()) - kernel[np.ix_(inside, inside)], np.ones(inside.sum()))
        assert found["escape_steps"] == pytest.approx(times[counts[inside] == stable][0])
        assert found["escape_from_full"] == pytest.approx(times[counts[inside] == 6][0])
        assert found["full"]["escape"] == pytest.approx(1 - kernel[-1, -1])
        assert found["full"]["expected"] == pytest.approx(1 / (1 - kernel[-1, -1]))
    assert len(states) == 64


def test_a_token_without_a_basin(sh, tables):
    done = sh("mlm-traps --certify b --draw texts -m b.json --seed 1", stdin=b"a a\na b\n")
    found, = of(done, "token")
    assert (found["basin"], found["escape_steps"]) == (None, None)
    assert (found["growing"], found["reason"]) == ([[0, 1]], "copies grow from everywhere: there is no threshold")
    assert [(one["draws"], one["states"]) for one in found["levels"]] == [(8, 1), (16, 2), (1, 1)]
    numbers = [law.tolist() for law in counting_table([0.1, 0.1, 0.1]).tables]
    (sh.folder / "r.json").write_bytes(orjson.dumps({"tokens": ["x", "!"], "tables": numbers}))
    rare, = of(sh("mlm-traps --certify '!' -m r.json --seed 1", stdin=b"x x x\n"), "token")
    assert (rare["growing"], rare["basin"]) == ([[0, 0]], None)
    assert rare["reason"].startswith("no range of copies")
    nothing = sh("mlm-traps --certify b --draw texts -m b.json --seed 1", stdin=b"b b\n")
    found, = of(nothing, "token")
    assert [one["k"] for one in found["levels"]] == [2]


def test_the_same_seed_gives_the_same_and_several_tokens_are_told(sh, copies):
    command = "mlm-traps --certify '!' --certify x -m c.json --seed 7"
    one = sh(command, stdin=TEXT)
    assert [found["word"] for found in of(one, "token")] == ["!", "x"]
    assert sh(command, stdin=TEXT) == one
    assert of(sh(command.replace("'!'", "id:1"), stdin=TEXT), "token")[0]["levels"] == of(one, "token")[0]["levels"]
    drawn = sh("mlm-traps --certify '!' -m c.json", stdin=TEXT)
    assert isinstance(drawn.records[0]["seed"], int)


def test_tokens_are_proposed(sh, copies):
    done = sh("mlm-traps --scan-tokens 2 -m c.json --seed 1", stdin=TEXT)
    assert (done.status, done.err) == (0, "")
    found, = of(done, "vocabulary")
    assert [token["word"] for token in found["tokens"]] == ["x", "!"]
    assert [token["escape"] for token in found["tokens"]] == pytest.approx([0.02, 0.07])
    fewer = sh("mlm-traps --scan-tokens 2 --candidates 1 -m c.json --seed 1", stdin=TEXT)
    assert len(of(fewer, "vocabulary")[0]["tokens"]) == 1


def test_what_cannot_be_asked(sh, copies):
    for arguments, words in (("--certify nope", "not a token"), ("--certify id:2", "token"),
                             ("--certify '!' --find", "exclude"), ("--certify '!' --no-model", "--no-model")):
        done = sh(f"mlm-traps {arguments} -m c.json", stdin=TEXT)
        assert done.status == 2
        assert words in done.err
    assert sh("mlm-traps --certify '!' -m c.json") == (0, b"", "")
    (sh.folder / "n.json").write_bytes(orjson.dumps({"tokens": ["x", "!"], "tables": [[0.5, 0.5]]}))
    one = sh("mlm-traps --certify '!' -m n.json --seed 1", stdin=b"x\n")
    assert of(one, "token")[0]["levels"][0]["drift"] == pytest.approx(0.5)
