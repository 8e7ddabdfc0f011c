"""The tables of mlm-basins --summary: accuracy of the labels, starts x basins, visits, moves."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from mlmglauber.commands.shared.chain_run import LAW_FIELDS
from mlmglauber.commands.shared.law_columns import law_columns
from mlmglauber.commands.shared.tables import (
    Cell,
    Column,
    Table,
    count,
    interval,
    name,
    number,
    several,
    share,
)
from mlmglauber.stream.records import Record

LAW = law_columns(lambda row: row)
TAU = Column("tau", "Temperature.", lambda row: number(row["tau"]))
N = Column("n", "Tokens of a text.", lambda row: count(row["n"]))
IN_A_CELL = "chains that visited, returned, ended there; steps spent there, in %"


def _with_ends(key: str, digits: int = 2) -> Any:
    return lambda row: interval(row[key], row[f"{key}_low"], row[f"{key}_high"], digits)


def _percent(part: float | None) -> Cell:
    return number(None if part is None else 100 * part, 0)


HELD_OUT = Table("Examples held out", (
    Column("folds", "Parts of the examples; each is labelled by a model fitted to the others.",
           lambda row: count(row["folds"])),
    Column("labelled right", "Share of them, with its 95 % interval.",
           lambda row: interval(row["accuracy"], row["low"], row["high"])),
    Column("above the rejection threshold", "Share of the examples whose likeliest basin has --reject or more.",
           lambda row: number(row["named"])),
    Column("right above the threshold", "Share of those examples that are labelled right.",
           lambda row: number(row["named_accuracy"])),
    Column("why none", "Why none could be held out.", lambda row: name(row.get("reason") or "")),
))
CLUSTERS = Table("Clusters by k-means", (
    Column("clusters", "Number of clusters.", lambda head: count(len(head["clusters"]))),
    Column("silhouette", "Mean silhouette, from -1 to 1: how well the clusters are separated.",
           lambda head: number(head["silhouette"])),
))
MATRIX = Table(f"Starts x basins: {IN_A_CELL}", (
    *LAW, TAU, N,
    Column("start", "What chains started from; a row for all chains, and with --draws one for the draws.",
           lambda row: name(row.get("start", "all"))),
    Column("chains", "Number of chains.", lambda row: count(row["chains"])),
    Column("BASIN", f"A column for each basin: {IN_A_CELL}; of draws their share.", lambda row: name("")),
    Column("none", "Steps in no basin, in %.", lambda row: _percent(row["unnamed"])),
))
VISITS = Table("Visits", (
    *LAW, TAU, N,
    Column("basin", "Name of the basin.", lambda row: name(row["basin"])),
    Column("share of steps", "Steps spent there, with the 95 % interval.", _with_ends("share")),
    Column("expected share", "Share that independent draws give.", lambda row: number(row["expected_share"])),
    Column("chains that visited", "Share of chains, with its 95 % interval.", _with_ends("visited")),
    Column("chains that returned", "Share of chains that came a second time, with its 95 % interval.",
           _with_ends("returned")),
    Column("visits", "Number of stays.", lambda row: count(row["visits"])),
    Column("expected in random order", "Number of stays if the same states came in random order.",
           lambda row: number(row["visits_expected"], 0)),
    Column("median dwell", "Kaplan-Meier median of a stay, steps.", lambda row: number(row["dwell_median"], 0)),
    Column("mean dwell", "Steps for each stay that ended, with the 95 % interval.", _with_ends("dwell_mean", 0)),
))
MOVES = Table("Moves from row to column: share of the moves from there", (
    *LAW, TAU, N,
    Column("from", "Basin that was left.", lambda row: name(row["from"])),
    Column("moves", "Number of moves from there.", lambda row: count(row["moves"])),
    Column("BASIN", "A column for each basin: share of the moves that went there, with its 95 % interval.",
           lambda row: name("")),
))
TABLES = (HELD_OUT, CLUSTERS, MATRIX, VISITS, MOVES)


def basin_tables(head: Record, summaries: Sequence[Record]) -> list[Table]:
    """The accuracy of the labels; starts x basins, visits and moves at each temperature and length."""
    accuracy = head.get("held_out")
    nothing = dict.fromkeys(("folds", "low", "high", "named", "named_accuracy"))
    quality = CLUSTERS.of([head]) if accuracy is None else HELD_OUT.of([nothing | accuracy])
    groups = [summary for summary in summaries if summary["over"] == "group"]
    names = list(dict.fromkeys(region["basin"] for group in groups for region in group["basins"]))
    starts = [summary for summary in summaries if summary["over"] == "start"]
    rows = [row for group in groups for row in _rows(group, starts)]
    visits = [{**_kind(group), **region} for group in groups for region in group["basins"]]
    moves = [row for group in groups for row in _moves(group)]
    return [quality, _wide(MATRIX, names, _visited).of(rows), VISITS.of(visits), _wide(MOVES, names, _moved).of(moves)]


def _wide(table: Table, names: Sequence[str], cell: Any) -> Table:
    """A table with a column for each basin in place of BASIN."""
    columns: list[Column] = []
    for column in table.columns:
        if column.heading == "BASIN":
            columns += [Column(basin, column.meaning, partial(cell, basin), stays=True) for basin in names]
        else:
            columns.append(column)
    return table._replace(columns=columns)


def _kind(row: Record) -> Record:
    """The fields that rows of one group share."""
    return {key: row[key] for key in ("tau", "n", *LAW_FIELDS) if key in row}


def _rows(group: Record, starts: Sequence[Record]) -> Iterator[Record]:
    """A row for each start of a group, one for all of them, and one for the draws."""
    yield from (start for start in starts if _kind(start) == _kind(group))
    yield group
    if group["expected_from"] == "draws":
        yield {**_kind(group), "start": "draws", "chains": None, "unnamed": None,
               "drawn": {region["basin"]: region["expected_share"] for region in group["basins"]}}


def _visited(basin: str, row: Record) -> Cell:
    keys = ("visited", "returned", "terminal", "share")
    if "drawn" in row:
        region_row: Record = {"share": row["drawn"].get(basin)}
    else:
        region_row = next((region for region in row["basins"] if region["basin"] == basin), {})
    cell = several({key: share(region_row.get(key)) for key in keys})  # its values are shares, as in the records
    shown = ("share",) if "drawn" in row else keys
    return cell._replace(text=" ".join(_percent(region_row.get(key)).text for key in shown))


def _moves(group: Record) -> Iterator[Record]:
    """A row for each basin that was left."""
    for source in dict.fromkeys(move["from"] for move in group["transitions"]):
        moves = [move for move in group["transitions"] if move["from"] == source]
        yield {**_kind(group), "from": source, "moves": sum(move["count"] for move in moves),
               "to": {move["to"]: move for move in moves}}


def _moved(basin: str, row: Record) -> Cell:
    move = row["to"].get(basin)
    cell = several({"p": interval(*((move[key] for key in ("p", "p_low", "p_high")) if move else (None,) * 3))})
    return cell if move else cell._replace(text="")
