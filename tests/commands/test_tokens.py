"""mlm-tokens: sites, pieces, ids, words of several pieces, unknown tokens and what is cut."""

import families
import orjson
import pytest

from mlmglauber.models.opening import open_model
from mlmglauber.models.words import block_of, part_of, split_words, word_spans

pytestmark = pytest.mark.in_process


def told(done):
    return [record for record in done.records if record["type"] == "tokens"]


def test_the_sites_of_a_text(sh):
    done = sh("mlm-tokens", stdin='{"id":"x","text":"The food was lovely, naïve ☃ xylophonists","topic":"q"}'.encode())
    assert (done.status, done.err) == (0, "")
    run, found = done.records
    assert (run["type"], run["command"], run["model"]) == ("run", "mlm-tokens", "tiny-en")
    lm = open_model("tiny-en")
    ids = lm.encode("The food was lovely, naïve ☃ xylophonists")
    assert (found["id"], found["topic"], found["ids"], found["n"]) == ("x", "q", ids, len(ids))
    assert found["pieces"][:8] == ["the", "food", "was", "love", "##ly", ",", "naive", "[UNK]"]
    assert (found["unknown"], found["unknown_sites"], found["text_exact"]) == (1, [7], False)
    assert found["split_words"] == [{"word": "lovely", "sites": [3, 4]},
                                    {"word": "xylophonists", "sites": list(range(8, len(ids)))}]
    assert (found["tokens"], found["cut"], found["taken"]) == (len(ids), 0, True)


def test_sites_are_those_of_the_other_commands(sh):
    """A word's sites as mlm-tokens tells them are the block that mlm-rect takes for the word."""
    text = "the food was lovely and the service was awful"
    split = told(sh(f"echo '{text}' | mlm-tokens"))[0]["split_words"]
    found = sh(f"echo '{text}' | mlm-rect --site lovely --to awful --site awful --to lovely").records[1]
    assert found["blocks"] == [word["sites"] for word in split]


@pytest.mark.parametrize(("options", "text", "fields"), [
    ("--length 3", "the cat sat on", {"n": 3, "tokens": 4, "cut": 1, "text": "the cat sat", "taken": True}),
    ("--length 9", "the cat", {"n": 2, "cut": 0, "taken_reason": "2 tokens, --length 9: shorter texts are skipped"}),
    ("", "the cat " * 300, {"n": 600, "max_sites": 510,
                            "taken_reason": "600 tokens, the model takes 510: shorten the text, or use --length"}),
    ("--length 500", "the cat " * 300, {"n": 500, "cut": 100, "taken": True}),
    ("", "☃ ☃", {"unknown": 2, "taken_reason": "every token is unknown"}),
])
def test_what_is_cut_and_what_is_not_taken(sh, options, text, fields):
    done = sh(f"mlm-tokens {options}", stdin=orjson.dumps({"text": text}))
    found, = told(done)
    assert done.status == 0
    assert {name: found[name] for name in fields} == fields
    assert found["taken"] == ("taken_reason" not in found)
    other = sh(f"mlm-sample --steps 0 {options}", stdin=orjson.dumps({"text": text}))
    if "unknown" not in found.get("taken_reason", ""):
        assert bool(other.states) == found["taken"]


def test_a_table_of_numbers(sh, tables):
    done = sh("printf 'a b\\na\\nz\\n' | mlm-tokens -m a.json")
    assert done.status == 65
    assert "stdin:3: 'z' is not a token of this table" in done.err
    assert [found.get("taken_reason") for found in told(done)] == [
        None, "the table has 2 sites, the state 1; give one token per site"]
    ids = sh("mlm-tokens -m a.json", stdin=b'{"ids":[2,0]}\n{"ids":[3,0]}\n')
    assert (ids.status, told(ids)[0]["pieces"]) == (65, ["c", "a"])
    assert "is outside the model's 3 tokens" in ids.err


def test_the_table(sh):
    done = sh("printf 'so lovely\\nthe cat\\n' | mlm-tokens --table")
    assert "│ 0  │    1 │ love  │  1296 │ lovely      │\n" in done.out.decode()
    assert "why not taken" not in done.out.decode()
    wide = sh("printf 'so lovely\\n' | mlm-tokens --csv").out.decode().splitlines()
    assert wide[0].startswith("table,id,site,piece,token,of the word")
    assert wide[2].startswith("Sites,0,1,love,1296,lovely")


@pytest.mark.parametrize(("family", "text", "words"), [
    ("bert", "the lazy dog sleeps, politics!", None),
    ("roberta", "the lazy dog café é sleeps!", ["the", "lazy", "dog", "café", "é", "sleeps", "!"]),
    ("esm", "MKTAYIAK", list("MKTAYIAK")),
])
def test_words_of_several_families(tmp_path, family, text, words):
    """Pieces of a word join, marks of punctuation and letters with a space between do not; bytes of a character do."""
    lm = open_model(str(families.save(family, tmp_path)[0]))
    ids = lm.encode(text)
    spans = word_spans(lm, ids)
    assert [site for first, last in spans for site in range(first, last)] == list(range(len(ids)))
    found = [lm.decode(ids[first:last]).strip() for first, last in spans]
    assert found == (words or ["the", "lazy", "dog", "sleeps", ",", "politics", "!"])
    assert all(len(piece) for piece in lm.pieces(ids))
    for word in split_words(lm, ids):
        assert part_of(lm, ids, word["sites"]) is None
        assert part_of(lm, ids, word["sites"][:1]) == word["word"]
        if word["word"].isascii():
            assert list(block_of(lm, ids, word["word"])) == word["sites"]
