"""Anything at all as input: every line is answered, passed on or told of, and what comes out is strict JSON."""

import gzip
import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import orjson
import pytest
from conftest import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from in_process import answer
from oracles import TABLE_A

from mlmglauber.models.embedder import Embedded
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Lines, parse, to_line

CORPUS = sorted((ROOT / "tests" / "corpus").glob("*"))
"""Inputs that were answered wrongly once."""
SECONDS = 600
"""Of the long run, all commands together."""
COMMANDS = [
    "sample -m a.json --seed 1 --steps 3 --every 1 -t 0,1",
    "sample -m a.json --seed 1 --steps 3 --on-change -c 2 --length 2 --start random",
    "sample -m a.json --seed 1 --steps 3 --every 1 --csv",
    "embed",
    "embed --pca 1 --encoding base64",
    "drift",
    "drift --summary --reference previous",
    "drift --summary --table",
    "rect -m a.json --seed 1 --rectangles 2",
    "rect -m a.json --seed 1 --rectangles 2 --summary --table",
    "rect --path --summary",
    "rect --path --summary --table",
    "influence -m a.json --seed 1 --draw top",
    "influence -m a.json --seed 1 --summary",
    "influence -m a.json --seed 1 --table",
    "exact -m a.json --top 3 --compare in",
    "exact -m a.json --top 3 --compare in --table",
    "couple -m a.json --seed 1 --max-steps 3 --every 1",
    "couple -m a.json --seed 1 --max-steps 3 --start random --lag 1",
    "couple --summarize",
    "couple --summarize --table",
    "couple --md",
    "traps -m a.json --min-steps 1",
    "traps --no-model --min-steps 1 --radius 0 --summary --table",
    "traps -m a.json --find --length 2",
    "basins --examples topics",
    "basins --clusters 2 --summary --start-field label",
    "basins --examples topics --summary --table --min-steps 1",
    "plot --terminal",
    *(f"plot --terminal --kind {kind}" for kind in ("drift", "rectangles", "residence", "times", "plane")),
]

STATE = {"type": "state", "run": "r", "id": "0", "chain": 0, "step": 1, "tau": 1.0, "n": 2, "text": "a b",
         "ids": [0, 1], "site": 1, "old": 0, "new": 1, "changed": True, "logp_old": -1.0, "logp_new": -0.5}
GOOD = [
    {"text": "a b"}, {"id": "x", "text": "c a", "label": "up"}, {"ids": [0, 2], "i": 0, "j": 1, "to_i": "b", "to_j": 1},
    STATE, {**STATE, "step": 2, "ids": [1, 1], "site": 0}, {**STATE, "step": 5, "changed": False},
    {**STATE, "embedding": [1.0, 2.0], "embedder": "e", "basin": "up"},
    {"type": "run", "schema": "mlm/1", "run": "r", "command": "mlm-sample", "seed": 1, "tau": 1.0, "model": "a.json",
     "hash": "0", "dtype": "float64", "versions": {}, "options": {"every": 1, "scan": "random", "freeze": [0]}},
    {"type": "run", "schema": "mlm/1", "run": "e", "command": "mlm-embed", "options": {"prompt": None}, "dims": 2},
    {"type": "pair", "run": "r", "id": "0+1", "pair": 0, "model": "a.json", "tau": 1.0, "n": 2, "seed": 1,
     "coupling": "maximal", "start": "pair", "replicas": 2, "lag": 1, "meeting": 3, "censored": False, "max_steps": 9,
     "last_change": 2, "steps": [0, 3], "hamming": [2, 0], "wasserstein": [1, 0]},
    {"type": "rectangle", "run": "r", "id": "0", "model": "a.json", "tau": 1.0, "n": 2, "i": 0, "j": 1, "delta": 0.5,
     "noise": 0.0},
    {"type": "summary", "of": "pair"}, {"type": "trap", "run": "r"},
]
FIELDS = sorted({key for record in GOOD for key in record} | {"drift", "truncated", "basin_p", "pll", "reason"})
ODD = [None, True, False, 0, -1, 1, 2, 3, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**63, -(2**63), 2**64, 10**40, 10**300, "",
       "a b", "c", "0", "mlm/2", "\x1b[2J[/red]", "\u2028\u0085\u202e",
       "\U0010ffff", [], [0, 1], [1, 0], [0.1, 2], [[]],
       [None], ["a"], [2**64], {}, {"a": []}, "state", "run", "mlm-sample", "AACAPwAAAMA=",
       "AAAA", 1e-300, [1e300, -1e300],
       [0, 0], [float(k) for k in range(66)]]

values = st.sampled_from(ODD) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=5)
records = st.builds(
    lambda record, changes, dropped: {key: value for key, value in {**record, **changes}.items() if key not in dropped},
    st.sampled_from(GOOD), st.dictionaries(st.sampled_from(FIELDS), values, max_size=2),
    st.sets(st.sampled_from(FIELDS), max_size=1))
written = st.sampled_from(GOOD).map(orjson.dumps) | records.map(lambda record: json.dumps(record).encode())


@st.composite
def chains(draw):
    """A whole chain, the same fields of all its states or of its pairs changed."""
    kept = draw(st.dictionaries(st.sampled_from(FIELDS), values, max_size=2))
    kind = draw(st.sampled_from(["state", "embedded", "pair", "rectangle"]))
    found, ids, pair, rectangle = [], [0, 1], GOOD[9], GOOD[10]
    for step in range(draw(st.integers(1, 6))):
        site, new = draw(st.integers(0, 1)), draw(st.integers(0, 2))
        old, ids = ids[site], [new if k == site else token for k, token in enumerate(ids)]
        record = {**STATE, "step": step, "ids": ids, "site": site, "old": old, "new": new, "changed": old != new}
        if kind == "embedded":
            record |= {"embedding": [float(step), 1.0], "embedder": "e"}
        elif kind != "state":
            record = {**(pair if kind == "pair" else rectangle), "pair": step, "n": 2 + step % 2}
        found.append(json.dumps({**record, **kept}).encode())
    return b"\n".join(found)


@st.composite
def spoilt(draw):
    """A line with a few bytes of it changed, cut or doubled."""
    line = bytearray(draw(written))
    for _ in range(draw(st.integers(1, 3))):
        k = draw(st.integers(0, len(line)))
        line[k : k + draw(st.integers(0, 4))] = draw(st.binary(max_size=3))
    return bytes(line)


lines = st.one_of(written, written, chains(), chains(), spoilt(), st.binary(max_size=30), st.sampled_from([
    b"", b" ", b"\r", b"\xef\xbb\xbf", b"{}", b"[]", b"null", b'{"text":"a b","text":"b b"}', b'{"a":1e999}',
    b"[" * 999, b'{"a":' * 300 + b"1" + b"}" * 300, b'{"a":' * 1023 + b"1" + b"}" * 1023, b"\xe2\x80\xa8", b"a b",
    b"NaN"]))
inputs = st.tuples(st.lists(lines, max_size=8), st.sampled_from([b"\n", b"\n", b"\r\n"]), st.booleans()).map(
    lambda parts: parts[1].join(parts[0]) + parts[1] * parts[2])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what the commands name."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "a.json").write_bytes(orjson.dumps({"tokens": ["a", "b", "c"], "tables": TABLE_A}))
    (folder / "topics").write_bytes(b"".join(
        b'{"label":"%s","embedding":[%d,%d],"embedder":"e"}\n' % (label, k % 2 + 1, sign * (k % 3 + 1))
        for label, sign in ((b"up", 1), (b"down", -1)) for k in range(6)))
    return folder


class Embedder:
    """An embedder without a model: a text's vector is its length."""

    identity = "e"
    max_tokens = 9
    open = classmethod(lambda cls, *_, **__: cls())

    def encode(self, texts):
        vectors = np.array([[len(text), 1] for text in texts], dtype=np.float32)
        return Embedded(vectors, np.ones(len(texts), np.int64), np.array([len(text) > 9 for text in texts]))

    def describe(self):
        return {"embedder": "stub", "max_tokens": 9}


def refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


def check(command, content, folder):
    """What is true of any input."""
    (Path(folder) / "in").write_bytes(content)  # which --compare reads too
    started = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mlmglauber.models.embedder.Embedder", Embedder)
        status, out, said = answer(command, content, folder)
    assert status in (0, 1, 2, 65), (status, said)  # too few records for what is asked, or of contradictory runs: 1, 2
    assert said or not status
    assert time.monotonic() - started < 20
    assert out.endswith(b"\n") or not out
    if {"--table", "--csv", "--md"} & set(command.split()) or command.startswith("plot"):
        assert b"\x1b" not in out
    else:
        for line in out.split(b"\n")[:-1]:
            assert isinstance(json.loads(line, parse_constant=refuse), dict)
            orjson.loads(line)
    assert "Traceback" not in said
    assert "\x1b" not in said
    assert all(line.startswith(f"mlm-{command.split()[0]}: ") for line in said.splitlines())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_went_wrong_once(place, path):
    for command in COMMANDS:
        check(command, path.read_bytes(), place)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_few_inputs(place, command):
    @settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(inputs)
    def tried(content):
        check(command, content, place)

    tried()


def states(kind, name, count=3):
    """Consecutive states of one chain, or as many other records."""
    ids = [0, 1]
    for step in range(1, count + 1):
        site, old, ids = step % 2, ids[step % 2], [1 - ids[0], ids[1]] if step % 2 == 0 else [ids[0], 1 - ids[1]]
        record = {**STATE, "id": name, "step": step, "ids": ids, "site": site, "old": old, "new": 1 - old}
        yield record | ({"embedding": [float(step), 1.0], "embedder": "e"} if kind == "embedded" else {})


@pytest.mark.soak
@pytest.mark.parametrize("command", COMMANDS)
def test_odd_values_in_every_field(place, command, record_property):
    """In one record of a chain, in all, and in records of other kinds; names and what is of all records one by one."""
    for field in FIELDS:
        parts = []
        for k, value in enumerate(ODD):
            for kind in ("state", "embedded"):
                for where in (1, 2, 3):
                    chain = list(states(kind, f"{kind}{k}/{where}"))
                    for record in chain if where == 3 else chain[where : where + 1]:
                        record[field] = value
                    parts.append(chain)
            parts.append([{**record, **({} if record["type"] == "run" else {"id": str(k)}), field: value}
                          for record in GOOD if "type" in record and record["type"] != "state"])
            parts.append([{**record, "id": f"t{k}/{j}", field: value} for j, record in enumerate(GOOD[:3])])
        whole = [json.dumps(record).encode() for part in parts for record in part]
        check(command, b"\n".join(whole), place)
    record_property("survived", f"mlm-{command}: {len(ODD)} odd values in each of {len(FIELDS)} fields")


@pytest.mark.soak
@pytest.mark.parametrize("command", COMMANDS)
def test_inputs_for_minutes(place, command, record_property):
    """What fails, at its smallest, is left in the folder corpus, to be kept there."""
    ends = time.monotonic() + SECONDS / len(COMMANDS)
    found = ROOT / "tests" / "corpus" / f"new-{COMMANDS.index(command)}"
    count = 0

    @settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(inputs)
    def tried(content):
        nonlocal count
        count += 1
        try:
            check(command, content, place)
        except BaseException:
            found.write_bytes(content)
            raise

    while time.monotonic() < ends:
        tried()
    record_property("survived", f"mlm-{command}: {count} inputs made up")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process's memory is read from /proc")
def test_long_lines_many_lines_and_packed_ones_take_little_memory(tmp_path):
    """300 MB without a line feed, plain and packed, and a million empty lines."""
    (tmp_path / "long").write_bytes(b"x" * (300 << 20) + b"\nend\n")
    (tmp_path / "empty").write_bytes(b"\n" * 1_000_000 + b"end\n")
    (tmp_path / "packed").write_bytes(gzip.compress(b"x" * (10 << 20), 1) * 30 + gzip.compress(b"\nend\n"))
    program = ("import re, sys; from mlmglauber.stream.records import Lines\n"
               "lines = [line for line in Lines(sys.argv[1:]) if line.content != b'']\n"
               "peak = re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())\n"
               "print([line.content for line in lines], peak[1])")
    done = subprocess.run([sys.executable, "-c", program, "long", "empty", "packed"], cwd=tmp_path, capture_output=True,
                          text=True, check=True)
    found, _, kilobytes = done.stdout.rpartition(" ")
    assert found == "[None, b'end', b'end', None, b'end']"
    assert int(kilobytes) < 250_000


@settings(max_examples=50, deadline=None)
@given(st.lists(lines, max_size=20), st.integers(1, 9))
def test_the_reader_takes_anything_in_any_pieces(tmp_path_factory, parts, block):
    """Whatever is read is written and read back the same."""
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(b"\n".join(parts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mlmglauber.stream.lines.BLOCK", block)
        with suppress(RecordError):  # an input that begins like a gzip file and is none
            for line in Lines([str(path)]):
                with suppress(RecordError):
                    record = parse(line)
                    if record is not None:
                        assert json.loads(to_line(record)) == record
