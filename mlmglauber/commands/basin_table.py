"""Tables for people of where chains went, made of the summary records of mlm-basins."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

from mlmglauber.commands.tables import NOTHING, interval, number, rendered
from mlmglauber.stream.printable import printable
from mlmglauber.stream.records import Record


def basin_tables(head: Record, summaries: Sequence[Record], color: bool) -> bytes:
    """How good the labels are; then, for each temperature and length, starts x basins, and moves between basins."""
    starts = [summary for summary in summaries if summary["over"] == "start"]
    parts = [f"{printable(_quality(head))}\n".encode()]
    for group in (summary for summary in summaries if summary["over"] == "group"):
        mine = [start for start in starts if (start["tau"], start["n"]) == (group["tau"], group["n"])]
        parts += [rendered(table, color) for table in (_matrix(group, mine), _dwells(group), _moves(group))]
    return b"".join(parts)


def _quality(head: Record) -> str:
    held = head.get("held_out")
    if held is None:
        return f"{len(head['clusters'])} clusters by k-means, silhouette {number(head['silhouette'])}"
    if held["accuracy"] is None:
        return f"Examples held out: {held['reason']}"
    right = interval(held["accuracy"], held["low"], held["high"])
    return (f"Examples held out, {held['folds']} folds: {right} of them labelled right; {number(held['named'])} above "
            f"the rejection threshold, of these {number(held['named_accuracy'])}")


def _where(group: Record) -> str:
    return f"tau {number(group['tau'])}, n {group['n'] if group['n'] is not None else NOTHING}"


def _matrix(group: Record, starts: Sequence[Record]) -> "Table":
    """One row for each start; in a cell the share of chains that visited, that returned, that ended there; and time."""
    from rich.table import Table

    what = "chains that visited, returned, ended there; steps spent there, in %"
    table = Table(title=f"Starts x basins, {_where(group)}: {what}")
    table.add_column("start")
    table.add_column("chains", justify="right")
    for region in group["basins"]:
        table.add_column(region["basin"], justify="right")
    table.add_column("none", justify="right")
    for row in [*starts, group]:
        cells = [" ".join(_percent(region[key]) for key in ("visited", "returned", "terminal", "share"))
                 for region in row["basins"]]
        table.add_row(row.get("start", "all"), str(row["chains"]), *cells, _percent(row["unnamed"]))
    if group["expected_from"] == "draws":
        table.add_row("draws", "", *(_percent(region["expected_share"]) for region in group["basins"]), "")
    return table


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.0f}"


def _dwells(group: Record) -> "Table":
    from rich.table import Table

    table = Table(title=f"Visits, {_where(group)}")
    for column in ("basin", "share of steps", "expected", "chains that visited", "that returned", "visits",
                   "expected in random order", "median dwell", "mean dwell"):
        table.add_column(column, justify="left" if column == "basin" else "right")
    for row in group["basins"]:
        table.add_row(
            row["basin"], *(_with_ends(row, key) if key != "expected_share" else number(row[key])
                            for key in ("share", "expected_share", "visited", "returned")),
            str(row["visits"]), number(row["visits_expected"], 0), number(row["dwell_median"], 0),
            _with_ends(row, "dwell_mean", 0))
    return table


def _with_ends(row: Record, key: str, digits: int = 2) -> str:
    return interval(row[key], row[f"{key}_low"], row[f"{key}_high"], digits)


def _moves(group: Record) -> "Table":
    """Where chains went from each basin: the share of the moves from there, with its interval."""
    from rich.table import Table

    table = Table(title=f"Moves from row to column, {_where(group)}: share of the moves from there")
    names = [region["basin"] for region in group["basins"]]
    for column in ("from", "moves", *names):
        table.add_column(column, justify="left" if column == "from" else "right")
    for source, moves in _by_source(group["transitions"]):
        cells = {move["to"]: _with_ends(move, "p") for move in moves}
        total = sum(move["count"] for move in moves)
        table.add_row(source, str(total), *(cells.get(name, "") for name in names))
    return table


def _by_source(transitions: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    for source in dict.fromkeys(move["from"] for move in transitions):
        yield source, [move for move in transitions if move["from"] == source]
