"""The reader and the writer of JSON Lines."""

import gzip
import os

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlmglauber.stream import lines
from mlmglauber.stream.errors import InputError, RecordError
from mlmglauber.stream.records import Line, Lines, parse, record_id, text_or_ids, to_line


def lines_of(tmp_path, *contents):
    names = []
    for k, content in enumerate(contents):
        path = tmp_path / f"f{k}"
        path.write_bytes(content)
        names.append(str(path))
    return [(os.path.basename(line.place), line.content) for line in Lines(names)]


def test_lines_split_at_the_line_feed_alone(tmp_path):
    content = '{"text":"a\u2028b"}\n{"text":"c\u0085d\u2029"}\r\nx\x0by\x0cz\n'.encode()
    assert [content for _, content in lines_of(tmp_path, content)] == content.split(b"\n")[:-1]


def test_places_count_every_line_of_each_file(tmp_path):
    found = lines_of(tmp_path, b"a\n\nb", b"", b"\xef\xbb\xbfc\nd\n")
    assert found == [("f0:1", b"a"), ("f0:2", b""), ("f0:3", b"b"), ("f2:1", b"c"), ("f2:2", b"d")]


MARKS = (b"\xef", b"\x1f", b"\xff", b"\xfe", b"{", b"[", b"PK", b"(\xb5", b"\xfd7", b"BZh")


@given(st.lists(st.binary(max_size=300).filter(lambda b: b"\n" not in b and not b.strip(b" \t\r").startswith(MARKS)),
                max_size=20),
       st.integers(1, 50))
def test_lines_do_not_depend_on_the_size_of_the_blocks(tmp_path_factory, contents, block):
    path = tmp_path_factory.mktemp("blocks") / "f"
    path.write_bytes(b"".join(content + b"\n" for content in contents))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", block)
        assert [line.content for line in Lines([str(path)])] == contents


def test_an_over_long_line_is_refused_without_being_held(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE", 100)
    monkeypatch.setattr(lines, "BLOCK", 64)
    found = lines_of(tmp_path, b"a\n" + b"x" * 5000 + b"\n" + b"y" * 100 + b"\nb\n" + b"z" * 101)
    assert [content for _, content in found] == [b"a", None, b"y" * 100, b"b", None]
    with pytest.raises(RecordError, match="more than"):
        parse(Line("f:2", None))


def test_a_missing_file_is_told_before_anything_is_read(tmp_path):
    (tmp_path / "here").write_text("a\n")
    with pytest.raises(InputError, match="gone: no such file"):
        Lines([str(tmp_path / "here"), str(tmp_path / "gone")])


def test_input_that_has_not_arrived_is_not_waited_for():
    read, write = os.pipe()
    lines = Lines([f"/dev/fd/{read}"])
    waited = []
    lines.before_wait = lambda: waited.append(os.write(write, b"late\n"))
    os.write(write, b"one\ntw")
    assert lines.next(wait=False).content == b"one"
    assert lines.next(wait=False) is None
    os.write(write, b"o\n")
    assert lines.next(wait=False).content == b"two"
    assert lines.next().content == b"late"
    assert len(waited) == 1
    os.close(write)
    assert lines.next() is None
    os.close(read)


@pytest.mark.parametrize(("content", "record"), [
    (b'{"text":"a"}', {"text": "a"}),
    (b' {"text":"a"}\r', {"text": "a"}),
    (b"plain text", {"text": "plain text"}),
    (b"[MASK] is text", {"text": "[MASK] is text"}),
    (b'"Hello," she said.', {"text": '"Hello," she said.'}),
    ("naïve \U0001f600".encode(), {"text": "naïve \U0001f600"}),
    (b"", None),
    (b" \t \r", None),
])
def test_good_lines(content, record):
    assert parse(Line("f:1", content)) == record


@pytest.mark.parametrize(("content", "reason"), [
    (b"{bad", "not a JSON object"),
    (b'{"a":NaN}', "not a JSON object"),
    (b'{"a":1e999}', "not a JSON object"),
    (b"[]", "a JSON array, not an object"),
    (b"42", "a JSON number, not an object"),
    (b'"text"', "a JSON string, not an object"),
    (b"null", "a JSON null, not an object"),
    (b"true", "a JSON truth value, not an object"),
    (b'{"text":"caf\xe9"}', "invalid UTF-8 at byte 13"),
    (b"caf\xe9", "invalid UTF-8"),
    (b'{"text":"\\ud800"}', "not a JSON object"),
])
def test_bad_lines_name_their_place_their_fault_and_a_way_out(content, reason):
    with pytest.raises(RecordError, match=reason) as caught:
        parse(Line("f:7", content))
    assert str(caught.value).startswith("f:7: ")
    assert ";" in str(caught.value)


def test_plain_text_is_refused_where_records_are_needed():
    with pytest.raises(RecordError, match="not a JSON object"):
        parse(Line("f:1", b"plain"), plain_text=False)


def test_floats_read_back_equal_and_nothing_is_lost_silently():
    values = np.random.default_rng(0).normal(size=100).astype(np.float32)
    back = orjson.loads(to_line({"v": values, "x": 0.1 + 0.2}))
    assert np.array(back["v"], np.float32).tobytes() == values.tobytes()
    assert back["x"] == 0.1 + 0.2
    assert to_line({"a": None}) == b'{"a":null}\n'
    for bad in ({"a": float("nan")}, {"a": {"b": [1.0, float("inf")]}}, {"a": np.array([np.nan], np.float32)}):
        with pytest.raises(AssertionError, match=r"is (nan|inf)"):
            to_line(bad)


def test_ids_of_inputs():
    assert record_id({"id": "x"}, 4) == "x"
    assert record_id({"id": 7}, 4) == "7"
    assert record_id({}, 4) == "4"
    assert record_id({"type": "state", "run": "r", "id": "3", "chain": 0, "step": 20}, 4) == "r/3/0/20"
    for bad in (True, 1.5, None, [1]):
        with pytest.raises(RecordError, match='"id"'):
            record_id({"id": bad}, 0)


BAD = [{}, {"text": 7}, {"text": None}, {"ids": "1 2"}, {"ids": [1, True]}, {"ids": [1.0]}]


@pytest.mark.parametrize("record", BAD)
def test_records_without_a_text_are_refused(record):
    with pytest.raises(RecordError):
        text_or_ids(record)


@pytest.mark.parametrize("members", [1, 2])
def test_gzip_is_unpacked(tmp_path, members):
    content = [b"".join(b'{"k":%d}\n' % k for k in range(start, 30_000, members)) for start in range(members)]
    path = tmp_path / "f"
    path.write_bytes(b"".join(map(gzip.compress, content)))
    lines = list(Lines([str(path)]))
    assert b"".join(line.content + b"\n" for line in lines) == b"".join(content)
    assert lines[-1].place.endswith(":30000")


def test_a_gzip_file_that_ends_early_is_told_of_after_its_whole_lines(tmp_path):
    path = tmp_path / "f"
    whole = gzip.compress(b"".join(b'{"k":%d}\n' % k for k in range(30_000)))
    path.write_bytes(whole[: len(whole) // 2])
    seen = []
    with pytest.raises(RecordError, match="ends early"):
        seen.extend(line for line in Lines([str(path)]))
    path.write_bytes(whole[:100] + bytes(50) + whole[150:])
    with pytest.raises(RecordError, match="broken"):
        list(Lines([str(path)]))


def test_integers_of_any_size_are_kept():
    big = b'{"id":123456789012345678901234567890,"x":{"y":[-9223372036854775809,1]},"z":18446744073709551615}'
    record = parse(Line("f:1", big))
    assert record == {"id": 123456789012345678901234567890, "x": {"y": [-9223372036854775809, 1]}, "z": 2**64 - 1}
    assert to_line(record) == big + b"\n"
    assert parse(Line("f:1", b'{"x":1e300,"y":12345678901234567890.0}')) == {"x": 1e300, "y": 12345678901234567890.0}
    assert to_line({"big": 2**70, "v": np.array([0.5])}) == b'{"big":1180591620717411303424,"v":[0.5]}\n'


def test_deep_nesting_is_a_bad_record():
    with pytest.raises(RecordError, match="depth"):
        parse(Line("f:1", b'{"a":' * 5000 + b"1" + b"}" * 5000))
