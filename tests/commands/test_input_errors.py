"""What stood before an error of the input is answered, then the error is told, on every command; marks and UTF-16."""

import bz2
import gzip
import lzma
import os

import orjson
import pytest
from in_process import answer

pytestmark = pytest.mark.in_process

TEXT = b'{"id":"%d","text":"a b","embedding":[1,%d],"embedder":"e"}\n'
STATE = (b'{"type":"state","run":"r","id":"0","chain":0,"step":%d,"tau":1.0,"n":2,"text":"a b","ids":[0,1],"site":0,'
         b'"old":0,"new":0,"changed":false,"logp_old":-1.0,"logp_new":-1.0,"embedding":[1,%d],"embedder":"e"}\n')
PAIR = (b'{"type":"pair","run":"r","id":"%d","pair":%d,"model":"m","tau":1.0,"n":2,"coupling":"maximal","start":"pair",'
        b'"replicas":2,"lag":0,"meeting":3,"max_steps":9,"last_change":2}\n')
COMMANDS = {
    "mlm-sample -m a.json --seed 1 --steps 4": (TEXT, "state"),
    "mlm-embed": (TEXT, None),
    "mlm-drift": (STATE, "state"),
    "mlm-drift --summary": (STATE, "summary"),
    "mlm-rect -m a.json --seed 1 --rectangles 2": (TEXT, "rectangle"),
    "mlm-rect -m a.json --seed 1 --rectangles 2 --summary": (TEXT, "summary"),
    "mlm-rect -q --path": (STATE, "summary"),
    "mlm-influence -m a.json --seed 1": (TEXT, "influence"),
    "mlm-exact -m a.json --top 2": (TEXT, "exact"),
    "mlm-couple -m a.json --seed 1 --start random --max-steps 30": (TEXT, "pair"),
    "mlm-couple --summarize": (PAIR, "summary"),
    "mlm-traps -m a.json --find": (TEXT, "trap"),
    "mlm-traps --no-model --min-steps 1": (STATE, "trap"),
    "mlm-basins --clusters 2": (STATE, "state"),
    "mlm-basins --examples topics --summary": (STATE, "summary"),
}
every_command = pytest.mark.parametrize(("command", "line", "kind"), [(name, *what) for name, what in COMMANDS.items()],
                                        ids=list(COMMANDS))


@pytest.fixture
def folder(sh, tables):
    (sh.folder / "topics").write_bytes(b"".join(
        b'{"label":"%s","embedding":[%d,%d],"embedder":"e"}\n' % (label, k % 2 + 1, sign * (k % 3 + 1))
        for label, sign in ((b"up", 1), (b"down", -1)) for k in range(6)))
    return sh.folder


def rows(line, count):
    return b"".join(line % (k, k) for k in range(count))


@every_command
def test_what_stood_before_an_error_is_answered(folder, command, line, kind):
    """Truncated, broken and padded gzip, a bad line under --strict, a folder among files: three good records."""
    good = rows(line, 3)
    (folder / "good").write_bytes(good)
    def run(arguments):
        return answer(f"{command.removeprefix('mlm-')} {arguments}", b"", folder)

    whole = run("good")
    assert whole.status == 0
    assert any(record.get("type") == kind for record in whole.records)
    packed = gzip.compress(good)
    (folder / "early.gz").write_bytes(packed[:-8])
    (folder / "broken.gz").write_bytes(packed[:-8] + bytes(8) + packed)
    (folder / "padded.gz").write_bytes(packed + bytes(700))
    (folder / "behind.gz").write_bytes(packed + b"what is this")
    (folder / "strict").write_bytes(good + b'{"text":7\n' + rows(line, 9)[len(good):])
    (folder / "folder").mkdir()
    assert run("padded.gz") == (0, whole.out, "")
    for arguments, status, said in (
            ("early.gz", 65, "early.gz: the gzip stream ends early"),
            ("broken.gz", 65, "broken.gz: the gzip stream is"),
            ("behind.gz", 65, "behind.gz: the gzip stream is"), ("--strict strict", 65, "strict:4: not a JSON object"),
            ("good folder good", 66, "folder: cannot be read")):
        done = run(arguments)
        assert (done.status, done.out) == (status, whole.out), arguments
        assert said in done.err
        assert done.err.count("\n") == 1
        kept = run(f"-o made {arguments}")
        assert kept.status == status
        assert not (folder / "made").exists()


def test_chains_in_work_are_finished(sh, folder):
    """69 good lines and a bad one: all 69 are answered under --strict, whatever the batch."""
    good = b"".join(b'{"id":"%d","text":"a b"}\n' % k for k in range(69))
    for rows_a_pass in (7, 64):
        command = f"mlm-sample -m a.json --seed 1 --steps 9 --batch-size {rows_a_pass}"
        whole = sh(command, stdin=good)
        assert sh(f"{command} --strict", stdin=good + b"{bad\n" + good).out == whole.out


def test_a_torn_last_line_is_no_text(folder):
    """Of a gzip file that ends early the beginning of a line is left: it would be another text."""
    packed = gzip.compress(os.urandom(3000).hex().encode() + b"\nthe cat sat\nthe cat sat on the mat")
    for cut in (len(packed) - 8, len(packed) - 12, len(packed) // 2):
        (folder / "f.gz").write_bytes(packed[:cut])
        done = answer("embed f.gz", b"", folder)
        assert {record["text"] for record in done.records[2:]} <= {"the cat sat"}


def test_check_reads_gzip(sh, folder):
    line = "echo 'a b' | mlm-sample"
    sh(f"{line} -m a.json --seed 4 --steps 9 --every 1 | gzip > run.gz")
    assert sh(f"{line} --from-run run.gz --check -q") == (0, b"", "")
    sh("zcat run.gz | head -n 4 | gzip > short.gz")
    assert sh(f"{line} --from-run short.gz --check").status == 1
    packed = (folder / "run.gz").read_bytes()
    (folder / "torn.gz").write_bytes(packed[:-8])
    done = sh(f"{line} --from-run torn.gz --check")
    assert done.status != 0
    assert "ends early" in done.err


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("content", [
    MARK + rows(TEXT, 2) + MARK + rows(TEXT, 3)[len(rows(TEXT, 2)):],
    MARK * 2 + rows(TEXT, 3),
    gzip.compress(MARK + rows(TEXT, 1)) + gzip.compress(MARK + rows(TEXT, 3)[len(rows(TEXT, 1)):]),
], ids=["cat", "twice", "members"])
def test_a_mark_is_no_part_of_a_line(folder, content):
    assert answer("embed", content, folder) == answer("embed", rows(TEXT, 3), folder)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_one_clear_error(folder, encoding):
    bad = rows(TEXT, 3).decode().encode(encoding)
    for content, answered in ((bad, 0), (rows(TEXT, 2) + bad, 2)):
        done = answer("embed", content, folder)
        assert done.status == 65
        assert done.err == (f"mlm-embed: stdin:{answered + 1}: the input is UTF-16; convert it with iconv -f UTF-16 -t "
                            "UTF-8\n")
        assert sum("embedding" in record for record in done.records) == answered


@pytest.mark.parametrize("invisible", ["\u200b", "\u00a0", "\u2060", "\x0b", "\u3000\u200e"])
def test_a_record_behind_invisible_characters_is_no_text(folder, invisible):
    done = answer("embed", invisible.encode() + rows(TEXT, 1), folder)
    assert (done.status, done.out) == (65, b"")
    assert "stdin:1: invisible characters before the JSON object" in done.err


@pytest.mark.parametrize(("content", "said"), [
    (b'[\n  {\n    "text": "a b"\n  }\n]\n', "a JSON value over several lines"),
    (b'{\n  "text": "a b"\n}\n', "a JSON value over several lines"),
    (b'[{"text":"a b"},\n{"text":"b a"}]\n', "a JSON value over several lines"),
    (b'[{"text":"a b"},{"te', "a JSON value over several lines"),
    (b'[["a", 1],\n["b", 2]]\n', "a JSON value over several lines"),
    (b'[{"text":"a b"}]\n', "a JSON array, not an object; write one object per line (jq -c '.[]' FILE)"),
])
def test_json_that_is_no_json_lines_is_no_text(folder, content, said):
    done = answer("embed", content + b"a b\n" * (b"goes on" in said.encode()), folder)
    assert (done.status, done.out) == (65, b"")
    assert done.err.startswith(f"mlm-embed: stdin:1: {said}")
    assert done.err.count("\n") == 1


def test_after_broken_json_nothing_of_the_file_is_text(folder):
    (folder / "f").write_bytes(b'a b\n{"text":"a b\nb a\n{"text":"b b"}\n')
    (folder / "g").write_bytes(b"c c\n")
    done = answer("embed f g", b"", folder)
    assert [record["text"] for record in done.records if "text" in record] == ["a b", "b b", "c c"]
    assert [line.split(": ")[1] for line in done.err.splitlines()] == ["f:2", "f:3"]
    brackets = b"[1] a note\n[MASK] me\n[[File:x.jpg]] a picture\n[sic]\n"
    assert len(answer("embed", brackets, folder).records) == 5


def test_text_forces_plain_text(folder):
    lines = ['"To be or not to be"', "2024", "[", '{"text":"a"}', "null", "> quoted"]
    for option in ("--text", "--format text"):
        done = answer(f"embed {option}", "\n".join(lines).encode(), folder)
        assert done.status == 0
        assert [record["text"] for record in done.records[1:]] == lines


def test_other_packers_are_named(folder):
    zstd = bytes.fromhex("28b52ffd04582100006162630a2d6e4c82")  # what `echo abc | zstd -c` writes
    for packed, unpack in ((lzma.compress(rows(TEXT, 3)), "xz -dc"), (bz2.compress(rows(TEXT, 3)), "bzip2 -dc"),
                           (zstd, "zstd -dc")):
        done = answer("embed", packed, folder)
        assert (done.status, done.out) == (65, b"")
        assert f"the input is compressed; decompress it: {unpack} FILE | ..." in done.err


def test_integers_that_are_too_long_are_told(folder):
    done = answer("embed", b'{"id":1' + b"0" * 400 + b',"text":"a b"}\n', folder)
    assert done.status == 65
    assert "an integer of more than 308 digits" in done.err
    long = b'{"id":1' + b"0" * 300 + b',"text":"a b"}\n'
    assert b"0" * 300 in answer("embed", long, folder).out


def test_messages_speak_json(folder):
    values = [b"null", b"7", b"[]", b"{}", b"true", b'""', b'" "']
    done = answer("embed", b"".join(b'{"text":%s}\n' % value for value in values), folder)
    kinds = ["null", "a number", "an array", "an object", "a truth value"]
    assert [line.split(": ", 2)[2] for line in done.err.splitlines()] == [
        *(f'"text" is {kind}, not a string; write it between quotes' for kind in kinds),
        *['"text" is empty; give a text, or leave the record out'] * 2]
    assert (done.status, done.out) == (65, b"")
    state = b'{"type":"state","run":"a","id":"0","chain":null,"step":null,"ids":[1,2],"embedding":[1]}\n'
    assert "step null does not come after" in answer("drift --summary", state, folder).err
    short = state.replace(b'"step":null', b'"step":0')
    assert 'chain null of "0": a burn-in' in answer("rect --path", short, folder).err
    assert '(no "tau")' in answer("plot --terminal", b'{"type":"pair","id":"1"}\n', folder).err
    none = answer("embed", b'{"body":"a b"}\n', folder)
    assert none.status == 0
    assert none.err == ("mlm-embed: no record with a `text` in the input (1 of no type); name the field that holds it "
                        "with --text-field\n")
    assert orjson.loads(none.out) == {"body": "a b"}
