"""The tables of mlm-score --table: a row for each token or word, then one for each text."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mlmglauber.commands.shared.tables import Cell, Column, Table, count, figure, name, number, sentence
from mlmglauber.stream.records import Record


class _Part(NamedTuple):
    """A token or a word of a text, by its place among them."""

    text: str
    scores: Record
    place: int

    def of(self, key: str) -> Any:
        """Its value in a list of the scores, None where there is no such list."""
        return self.scores[key][self.place] if key in self.scores else None


def _columns(what: str, heading: str, key: str, of: str, pooled: tuple[str, str]) -> tuple[Column, ...]:
    return (
        Column("id", "Id of the text.", lambda row: name(row.text)),
        Column(what, f"Place of the {what}, from 0 on.", lambda row: count(row.place), stays=True),
        Column(heading, of, lambda row: name(row.of(key)), stays=True),
        Column("logp", "Log-probability given all other tokens, or those before it, nats."
               + (" The sum over the tokens of the word." if pooled[0] else ""), lambda row: number(row.of("logp"), 3)),
        Column("logp within word", "The same with the later tokens of its word masked too.",
               lambda row: _optional(row.of("logp_within_word"))),
        Column("gamma", "Margin: log-probability minus the largest one of another token, nats." + pooled[0],
               lambda row: number(row.of("gamma"), 3)),
        Column("rank", "1 for the likeliest token of the vocabulary." + pooled[1], lambda row: count(row.of("rank"))),
    )


def _optional(value: float | None) -> Cell:
    """A number, empty where there is none, so that a column without a number is left out."""
    return Cell("", (("", None),)) if value is None else number(value, 3)


def _column(heading: str, key: str, meaning: str) -> Column:
    """A column of a field; it is left out of a table of another kind of model, which has no such field."""
    def cell(row: tuple[str, Record]) -> Cell:
        if key not in row[1]:
            return _optional(None)
        return figure(row[1][key], lambda shown: f"{shown:.2f}" if abs(shown) < 1e6 else f"{shown:.2e}")

    return Column(heading, meaning, cell, stays=True)


TOKENS = Table("Tokens", _columns("site", "piece", "pieces", "The token, as the vocabulary writes it.", ("", "")))
WORDS = Table("Words", _columns("word", "text", "words", "The word.",
                                (" The smallest of its tokens.", " The largest of its tokens.")))
TEXTS = Table("Texts", (
    Column("id", "Id of the text.", lambda row: name(row[0]), stays=True),
    Column("tokens", "Tokens that have a score.", lambda row: count(row[1].get("scored_tokens"))),
    Column("words", "Words.", lambda row: count(row[1].get("scored_words"))),
    _column("PLL", "pll", "Pseudo-log-likelihood under a masked model: the sum of log p(token | all others), nats."),
    _column("PLL within word", "pll_within_word", "The same with the later tokens of each word masked too, nats."),
    _column("log-likelihood", "log_likelihood", "Log-probability of the text under a causal model, nats."),
    _column("pseudo-perplexity", "pseudo_perplexity", "exp(-PLL / tokens)."),
    _column("pseudo-perplexity a word", "word_pseudo_perplexity", "exp(-PLL / words)."),
    _column("perplexity", "perplexity", "exp(-log-likelihood / tokens)."),
    _column("perplexity a word", "word_perplexity", "exp(-log-likelihood / words)."),
    Column("margin", "The smallest margin of a token, nats; above 0 no step at tau 0 changes the text.",
           lambda row: number(row[1].get("margin"), 3), stays=True),
    Column("why none", "Why there is no log-likelihood.", lambda row: sentence(
        row[1].get("pll_reason", row[1].get("log_likelihood_reason")))),
))
TABLES = (TOKENS, WORDS, TEXTS)


def score_tables(rows: Sequence[tuple[str, Record]]) -> list[Table]:
    """The tokens or words of all texts, and the texts. rows: the name of each text and the fields of its score."""
    return [TOKENS.of(_parts(rows, "token_scores")), WORDS.of(_parts(rows, "word_scores")), TEXTS.of(rows)]


def _parts(rows: Sequence[tuple[str, Record]], key: str) -> Iterator[_Part]:
    for text, fields in rows:
        scores = fields.get(key, {"rank": []})
        for place in range(len(scores["rank"])):
            yield _Part(text, scores, place)
