"""What commands read: ids, references and their embedders, formats, values of options, huge lines, silence."""

import gzip
import json
import re
import shutil
from pathlib import Path

import orjson
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import answer

from mlmglauber.commands.drift.reference import own_id
from mlmglauber.commands.shared.command_line import takes_list
from mlmglauber.stream.lines import Lines
from mlmglauber.stream.records import parse, record_id

pytestmark = pytest.mark.in_process
STATE = '{"type":"state","run":"a","id":%s,"chain":0,"step":0,"embedding":%s%s}\n'


def drift(sh, references, states):
    (sh.folder / "n").write_text(references)
    done = sh("mlm-drift --reference n", stdin=states.encode())
    return done.status, [record["drift"] for record in done.records if "drift" in record], done.err


def test_references_are_found_by_the_string_of_their_id(sh):
    two = '{"id":0,"embedding":[1,0]}\n{"id":"1","embedding":[0,1]}\n'
    states = STATE % ('"0"', "[1,0]", "") + STATE % ("1", "[0,1]", "") + STATE % ('"1"', "[1,0]", "")
    assert drift(sh, two, states) == (0, [0, 0, 1], "")


def test_a_reference_without_an_id_is_called_by_its_place(sh):
    """As mlm-sample calls texts: what mlm-embed writes before them is not counted."""
    plain = '{"embedding":[1,0]}\n{"embedding":[0,1]}\n'
    for head in ("", '{"type":"run","run":"e","command":"mlm-embed"}\n'):
        assert drift(sh, head + plain, STATE % ('"0"', "[1,0]", "")) == (0, [0], "")
        assert drift(sh, head + plain, STATE % ("1", "[1,0]", "")) == (0, [1], "")
        assert drift(sh, head + plain, head + '{"embedding":[1,0]}\n{"embedding":[0,1]}\n')[1] == [0, 0]
    status, found, said = drift(sh, plain, STATE % ('"2"', "[1,0]", ""))
    assert (status, found) == (65, [])
    assert "n has no reference for the id '2'; add one" in said


def test_two_references_of_one_id_are_refused(sh):
    two = '{"id":7,"embedding":[1,0]}\n{"id":"7","embedding":[0,1]}\n'
    status, found, said = drift(sh, two, STATE % ("7", "[1,0]", ""))
    assert (status, found) == (65, [])
    assert said == "mlm-drift: n:2: a second reference has the id '7', the first is at n:1; leave one of them out\n"


def test_an_id_that_is_no_name_is_a_bad_record(sh):
    bad = '{"id":[1],"embedding":[1,0]}\n{"id":true,"embedding":[1,0]}\n{"id":1.5,"embedding":[1,0]}\n'
    status, found, said = drift(sh, bad + '{"id":"0","embedding":[0,1]}\n', STATE % ('"0"', "[1,0]", ""))
    assert (status, found) == (65, [1])
    assert re.findall(r'n:(\d): "id" is (an? \w+ ?\w*), not a name', said) == [
        ("1", "an array"), ("2", "a truth value"), ("3", "a number")]


names = st.one_of(st.integers(-5, 10**30), st.text(max_size=4))


@given(names, st.integers(0, 9))
def test_there_is_one_rule_for_ids(name, place):
    assert record_id({"id": name}, place) == own_id({"id": name}, place) == str(name)
    assert record_id({}, place) == own_id({}, place) == str(place)
    assert record_id({"type": "state", "id": name, "text": "a"}, place) == str(name)


EMBEDDED = b'{"type":"state","run":"a","id":"0","chain":0,"step":%d,"embedding":[1,%d],"embedder":"%s"}\n'


@pytest.mark.parametrize("line", [
    "mlm-drift --reference other", "mlm-basins --examples other", "mlm-basins --examples mine --draws other "
    "--start-field id --summary", "mlm-drift", "mlm-drift --summary", "mlm-basins --clusters 2",
    "mlm-basins --examples mine"])
def test_vectors_of_two_embedders_never_meet(sh, line):
    for name, embedder in (("other", '"x"'), ("mine", '"y"')):
        (sh.folder / name).write_text("".join(
            f'{{"id":"{k}","label":"{"ab"[k % 2]}","embedding":[{(-1) ** k},{k}],"embedder":{embedder}}}\n'
            for k in range(8)))
    whole = EMBEDDED % (0, 1, b"y") + EMBEDDED % (1, 2, b"y")
    done = sh(line, stdin=whole if "other" in line else whole + EMBEDDED % (2, 3, b"x"))
    assert done.status == 65
    assert re.search(r"\b[xy]\b.*\b[xy]\b", done.err)
    assert done.err.count("\n") == 1
    (sh.folder / "bare").write_text((sh.folder / "mine").read_text().replace(',"embedder":"y"', ""))
    none = sh(line.replace("other", "bare"), stdin=whole) if "other" in line else None
    assert none is None or (none.status == 65 and "none named" in none.err)


TAKES = [
    ("sample", "-t 1 --tau 2"), ("sample", "--freeze 0 --freeze 1"), ("sample", "--allow a --allow b"),
    ("couple", "--length 2 --length 3"), ("couple", "--eps 0.1 --eps 0.2"),
    ("drift", "--threshold 0.1 --threshold 0.2"), ("exact", "--allow a --allow b"), ("exact", "--sites 0 --sites 1")]


@pytest.mark.parametrize(("command", "twice"), TAKES)
def test_a_list_stands_once(sh, command, twice):
    done = sh(f"mlm-{command} {twice}")
    assert done.status == 2
    assert "is given twice; write one list" in done.err


def test_every_option_with_a_list_is_seen_as_one():
    """By the rule of its metavar: a type that splits at commas has a metavar that says so."""
    from importlib import import_module

    names = {path.parent.name for path in (ROOT / "mlmglauber" / "commands").glob("*/options.py")} - {"shared"}
    assert len(names) >= 11
    for name in sorted(names):
        for option in import_module(f"mlmglauber.commands.{name}.command").main.params:
            splits = type(option.type).__name__ in ("Temperatures", "Numbers", "Sites", "Lengths")
            assert not splits or takes_list(option), (name, option.name)


@pytest.mark.parametrize("line", [
    "mlm-sample --allow", "mlm-sample -m", "mlm-embed --prompt", "mlm-rect --site x --site y --to u --to",
    "mlm-traps --certify", "mlm-exact --allow", "mlm-basins --clusters 2 --summary --start-field",
    "mlm-embed --text-field"])
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_a_value_that_is_not_utf_8_is_a_usage_error(sh, line, locale):
    done = sh(f"echo 'the cat' | {line} $'\\xff\\xe9'", LC_ALL=locale)
    assert (done.status, done.out, done.err.count("\n")) == (2, b"", 2)
    assert "is not UTF-8; write it in UTF-8" in done.err


def test_values_are_utf_8_in_any_locale(sh, tables):
    for variables in ({"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"LC_ALL": "C.UTF-8"}):
        done = sh("echo 'a b' | mlm-sample -m a.json --allow é", PYTHONIOENCODING="utf-8", **variables)
        assert "'é' is not a token of this table" in done.err
    (tables / "texts").write_text("a b\n")
    done = sh("mv texts $'\\xff'; mlm-sample -m a.json --steps 0 $'\\xff'")  # the name of a file is any bytes
    assert (done.status, len(done.states)) == (0, 1)


def bare(done):
    """The records behind the first, without what mlm-embed adds."""
    added = ("embedding", "embedder")
    return [{key: value for key, value in record.items() if key not in added} for record in done.records[1:]]


@pytest.mark.parametrize("name", ["f.csv", "f.csv.gz", "f.txt"])
def test_tables_are_read_by_their_columns(sh, name):
    content = b'id,body,topic\n7,"the cat, ""sat""\non the mat",x\n8,a dog,\n9,short\n'
    (sh.folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    form = "--format csv " if name.endswith("txt") else ""
    done = answer(f"embed {form}--text-field body {name}", b"", sh.folder)
    assert done.status == 65
    assert bare(done) == [{"id": "7", "topic": "x", "text": 'the cat, "sat"\non the mat'},
                                {"id": "8", "topic": "", "text": "a dog"}]
    assert f"{name}:5: the row has 2 fields, the first row 3; correct the row" in done.err
    none = answer(f"embed {form}{name}", b"", sh.folder)
    assert none.status == 65
    assert "no column 'text' for the text; choose one of id, body, topic with --text-field" in none.err


def test_tabs_quotes_and_ends(sh):
    content = b'text\tn\nit is 5" long\t1\r\n"a\tb"\t2\n\n"open\n'
    done = answer("embed --format tsv", content, sh.folder)
    assert [record["text"] for record in done.records[1:]] == ['it is 5" long', "a\tb"]
    assert "stdin:5: a quoted field has no closing quote; add it" in done.err


def test_fasta_is_joined_and_upper_cased_when_asked(sh):
    content = ";comment\n>p1 of a mouse\nmka\nLL*\n>\nAC DC\n>p3\n\n"
    (sh.folder / "f.fa").write_text(content)
    done = answer("embed f.fa", b"", sh.folder)
    assert bare(done) == [{"id": "p1", "description": "of a mouse", "text": "mkaLL"}, {"text": "ACDC"}]
    assert "f.fa:7: a sequence without letters; remove it" in done.err
    assert answer("embed --upper f.fa", b"", sh.folder).records[1]["text"] == "MKALL"
    lost = answer("embed --format fasta", b"MKA\n", sh.folder)
    assert (lost.status, lost.out) == (65, b"")
    assert 'the first sequence has no line of ">" before it' in lost.err


def test_a_field_of_records_may_hold_the_text(sh):
    content = b'{"body":"a","n":12345678901234567890123}\n{"text":"b"}\n{"type":"run"}\n'
    done = answer("embed --text-field body", content, sh.folder)
    _, first, other = map(json.loads, done.out.splitlines())
    assert (first["n"], first["text"], "body" in first) == (12345678901234567890123, "a", False)
    assert other == {"type": "run"}
    assert 'stdin:2: the record has no field "body", which --text-field names; add it' in done.err


def test_formats_exclude_what_they_have_not(sh):
    for options in ("--text --format csv", "--text --text-field x", "--format csv --upper"):
        assert answer(f"embed {options}", b"", sh.folder).status == 2


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(str.strip), max_size=6))
def test_a_table_gives_back_what_was_written(tmp_path_factory, texts):
    import csv

    from mlmglauber.stream.formats import Reading

    path = tmp_path_factory.getbasetemp() / "t.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in texts)])
    assert [parse(line) for line in Lines([str(path)], Reading())] == [{"text": text} for text in texts]


def test_a_state_without_a_key_is_an_input_of_its_own_name(sh, tables):
    line = "mlm-sample -m a.json --seed 1 --steps 0"
    done = sh(line, stdin=b'{"type":"state","id":"ohio","text":"a b"}\n{"type":"state","text":"b a"}\n')
    assert [state["id"] for state in done.states] == ["ohio", "1"]
    whole = sh(line, stdin=b'{"type":"state","run":"r","id":"ohio","chain":0,"step":7,"text":"a b"}\n')
    assert [state["id"] for state in whole.states] == ["r/ohio/0/7"]


@pytest.mark.parametrize("command", ["sample --steps 0", "couple --start random --max-steps 2", "rect --rectangles 1",
                                     "exact --top 2", "influence"])
def test_texts_that_are_passed_on_are_counted(tables, command):
    passed = b'{"type":"trap","text":"a b"}\n' * 2 + b'{"type":"pair","text":"a b"}\n{"type":"run"}\n'
    done = answer(f"{command} -m a.json", passed + b"a b\n", tables)
    assert done.status == 0
    assert done.err == (f"mlm-{command.split()[0]}: records with a text were passed on because they are not inputs: "
                        "2 of type trap, 1 of type pair\n")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process's memory is read from /proc")
@pytest.mark.parametrize(("command", "word"), [
    ("sample --length 8 --steps 1 --seed 1", "the cat sat on the mat "),
    *(pytest.param(command, word, marks=pytest.mark.soak)
      for command, word in (("sample --steps 1", "a"), ("embed", "the cat sat on the mat ")))])
def test_a_huge_line_costs_little_memory(tmp_path, command, word):
    """8 MB in one line: 2 MB took 1.1 GB above a short one. With --length the first tokens are those of its start."""
    import subprocess
    import sys

    (tmp_path / "short").write_text(f"{word * 20}\n")
    (tmp_path / "huge").write_text(word * (8_000_000 // len(word)) + "\n")
    program = ("import re, sys\n"
               f"from mlmglauber.commands.{command.split()[0]}.command import main\n"
               "try:\n main.main(sys.argv[1:])\n"
               "finally:\n"
               " print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)\n")
    peaks, outs = [], []
    for name in ("short", "huge"):
        done = subprocess.run([sys.executable, "-c", program, *command.split()[1:], name], cwd=tmp_path, check=False,
                              capture_output=True, text=True)
        peaks.append(int(done.stderr.splitlines()[-1]))
        outs.append([orjson.loads(line) for line in done.stdout.splitlines()])
    assert peaks[1] - peaks[0] < 150_000
    if "--length" in command and word != "a":
        short, huge = (next(record["ids"] for record in out if record["type"] == "state") for out in outs)
        assert short == huge


SILENT = {
    "drift": 0, "drift --summary": 65, "basins --clusters 2": 0, "basins --clusters 2 --summary": 65,
    "basins --examples topics --summary": 65, "couple --summarize": 65, "rect --path": 65,
    "traps --summary": 65, "rect --summary": 65, "sample": 0, "exact --top 2": 0, "influence": 0,
    "couple": 0, "embed": 0, "traps": 0, "traps --find": 0, "traps --find --summary": 65, "influence --summary": 65,
    "influence --table": 65, "exact --top 2 --table": 65, "exact --top 2 --csv": 65, "sample --table": 65, "tokens": 0,
    "tokens --md": 65}


@pytest.mark.parametrize("command", SILENT)
def test_an_input_without_what_is_wanted_is_told(tables, command):
    shutil.copy(ROOT / "examples" / "topics.jsonl", tables / "topics")
    needs = "" if command.startswith(("drift", "basins", "embed")) else " -m a.json"
    done = answer(f"{command}{needs}", b'{"type":"exact","x":1}\n', tables)
    assert (done.status, done.err.count("\n")) == (SILENT[command], 1)
    assert " in the input (1 of type exact); " in done.err
    quiet = answer(f"{command}{needs} -q", b'{"type":"exact","x":1}\n', tables)
    assert (quiet.status, quiet.err) == (SILENT[command], "")


def test_one_text_makes_no_pair(sh, tables):
    done = sh("echo 'a b' | mlm-couple -m a.json")
    assert (done.status, done.err) == (65, "mlm-couple: 1 text at the end of the input unused: too few for a pair\n")
