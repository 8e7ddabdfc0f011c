"""--allow-file and --ban-file: the chain of the words that remain, and the run record holds them."""

import orjson
import pytest

from mlmglauber.commands.shared.chain_run import listed

pytestmark = [pytest.mark.in_process, pytest.mark.usefixtures("tables")]

SAMPLE = "echo 'b b' | mlm-sample -m a.json --seed 1 --steps 60 --every 1"


@pytest.fixture
def files(tables):
    (tables / "ac").write_text("a\n\n  c\r\na\n")
    (tables / "b").write_text("id:1\n")
    (tables / "abc").write_text("a\nb\nc")
    return tables


def bare(states):
    return [state | {"run": None} for state in states]


def test_files_and_lists_of_the_same_words_are_the_same_chain(sh, files):
    expected = bare(sh(f"{SAMPLE} --allow a,c").states)
    for options in ("--allow-file ac", "--ban-file b", "--allow-file abc --ban-file b", "--allow a --allow-file ac"):
        run, *states = sh(f"{SAMPLE} {options}").records
        assert bare(states) == expected, options
        assert run["banned"] == 1
    assert sh(f"{SAMPLE} --allow-file ac").records[0]["options"]["allow_file"] == ["a", "c", "a"]
    assert sh(f"{SAMPLE} --ban-file b").records[0]["options"]["ban_file"] == ["id:1"]
    assert not {"allow_file", "ban_file"} & sh(f"{SAMPLE}").records[0]["options"].keys()
    pairs = [sh(f"echo 'a c' | mlm-couple -m a.json --seed 1 --start random --pairs 5 --every 1 {options}").records
             for options in ("--allow a,c", "--allow-file ac", "--ban-file b")]
    assert [bare(records[1:]) for records in pairs[1:]] == [bare(pairs[0][1:])] * 2


def test_the_words_are_part_of_the_run(sh, files):
    def run(options):
        return sh(f"{SAMPLE} {options}").records[0]["run"]

    assert len({run(""), run("--allow a,c"), run("--allow-file ac"), run("--ban-file b"), run("--allow-file abc")}) == 5
    whole = sh(f"{SAMPLE} --ban-file b > run; cat run").out
    sh("rm b")
    assert sh("echo 'b b' | mlm-sample --from-run run").out == whole


def test_what_reads_the_states_knows_the_words(sh, files):
    for options in ("--allow-file ac", "--ban-file b"):
        sh(f"echo 'a a' | mlm-sample -m a.json --seed 1 -t 0.3 --steps 4000 --on-change {options} > chains")
        listed_words = sh("echo 'a a' | mlm-sample -m a.json --seed 1 -t 0.3 --steps 4000 --on-change --allow a,c | "
                          "mlm-traps -m a.json --min-steps 30").records
        found = sh("mlm-traps -m a.json --min-steps 30 chains").records
        assert len(found) > 3
        assert [trap.get("escape") for trap in found] == [trap.get("escape") for trap in listed_words]
        summary = sh("mlm-traps -m a.json --min-steps 30 --summary chains").records[-1]
        assert summary["allow" if "allow" in options else "ban"] == ("a,c" if "allow" in options else "id:1")
        sh(f"echo 'a a' | mlm-sample -m a.json --seed 1 -c 20 --steps 400 --on-change {options} > chains")
        compared = sh("echo 'a a' | mlm-exact -m a.json --allow a,c --compare chains").records[1]["compare"]
        assert compared["p_value"] > 1e-3  # fixed seed; a right sampler fails with probability 1e-3


def test_exact_takes_the_files(sh, files):
    def exact(options):
        return [record | {"run": None} for record in
                sh(f"echo 'a a' | mlm-exact -m a.json -t 0.5,1 {options}").records[1:]]

    expected = exact("--allow a,c")
    assert exact("--allow-file ac") == exact("--allow-file abc --ban-file b") == expected
    assert exact("--top 3 --ban-file b") == expected
    for options in ("--allow-file ac --top 2", "--ban-file b"):
        assert sh(f"echo 'a a' | mlm-exact -m a.json {options}").status == 2


@pytest.mark.parametrize(("content", "status", "reason"), [
    (b"a\nzebra\n", 65, "words:2: 'zebra' is not a token"), (b"", 65, "words: the file of"), (b"\n \n", 65, "no word"),
    (b"a\n\xff\n", 65, "words:2: invalid UTF-8 at byte 1"), (b"id:3\n", 65, "words:1: 'id:3' is not the id"),
    (None, 66, "words: no such file")])
@pytest.mark.parametrize("command", ["sample --allow-file", "couple --lag 1 --ban-file", "exact --allow-file"])
def test_a_bad_file_is_one_line_with_its_place(sh, tables, command, content, status, reason):
    if content is not None:
        (tables / "words").write_bytes(content)
    done = sh(f"echo 'a b' | mlm-{command} words -m a.json")
    assert done.status == status
    assert done.err.count("\n") == 1
    assert reason in done.err


def test_no_token_left_is_a_usage_error(sh, files):
    done = sh(f"{SAMPLE} --allow a --ban-file abc")
    assert (done.status, done.out) == (2, b"")
    assert "every token that may be drawn is banned" in done.err


def test_a_run_record_with_other_words_is_a_bad_record(sh, files):
    run, *states = sh(f"{SAMPLE} --ban-file b").records
    run["options"]["ban_file"] = "b"
    lines = b"".join(orjson.dumps(record) + b"\n" for record in (run, *states))
    assert sh("mlm-traps -m a.json", stdin=lines).status == 65


def test_long_lists_are_shortened_in_summaries():
    words = [f"w{k}" for k in range(5000)]
    assert len(listed(words)) < 150
    assert listed(words) != listed([*words[:-1], "other"])
