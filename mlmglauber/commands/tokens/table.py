"""The tables of mlm-tokens --table: a row for each site, then one for each text."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mlmglauber.commands.shared.tables import Column, Table, count, name, sentence
from mlmglauber.stream.records import Record


class _Site(NamedTuple):
    """One site of a text."""

    text: Record
    site: int
    word: str | None
    note: str


SITES = Table("Sites", (
    Column("id", "Id of the text.", lambda row: name(row.text["id"])),
    Column("site", "Site, from 0 on.", lambda row: count(row.site), stays=True),
    Column("piece", "The token, as the vocabulary writes it.", lambda row: name(row.text["pieces"][row.site]),
           stays=True),
    Column("token", "Id of the token.", lambda row: count(row.text["ids"][row.site]), stays=True),
    Column("of the word", "The word of several pieces to which it belongs.", lambda row: sentence(row.word)),
    Column("note", "Unknown: the vocabulary lacks this part of the text. Never drawn: no chain draws this token.",
           lambda row: sentence(row.note)),
))
TEXTS = Table("Texts", (
    Column("id", "Id of the text.", lambda text: name(text["id"]), stays=True),
    Column("n", "Sites, with --length those that are kept.", lambda text: count(text["n"]), stays=True),
    Column("tokens", "Tokens of the whole text.", lambda text: count(text["tokens"])),
    Column("cut", "Tokens that --length leaves out.", lambda text: count(text["cut"])),
    Column("unknown", "Unknown tokens among the sites.", lambda text: count(text["unknown"])),
    Column("model takes", "Maximum number of sites of the model.", lambda text: count(text["max_sites"])),
    Column("why not taken", "Why other commands would not take the text.",
           lambda text: sentence(text.get("taken_reason"))),
))
TABLES = (SITES, TEXTS)


def tokens_tables(records: Sequence[Record]) -> list[Table]:
    """The sites of all texts, and the texts."""
    return [SITES.of(site for record in records for site in _sites(record)), TEXTS.of(records)]


def _sites(text: Record) -> Iterator[_Site]:
    words = {site: split["word"] for split in text["split_words"] for site in split["sites"]}
    never = text.get("never_drawn", [])
    for site in range(text["n"]):
        note = "unknown" if site in text["unknown_sites"] else "never drawn" if site in never else ""
        yield _Site(text, site, words.get(site), note)
