"""The summary records of a page, and the tables that their commands make of them."""

from collections.abc import Sequence

from mlmglauber.commands.report.group_warnings import group_warnings
from mlmglauber.commands.shared.tables import Table
from mlmglauber.pictures.kinds import summary_of
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import as_json, dumps
from mlmglauber.stream.records import Record

LIMIT = 5000
"""Maximum number of summaries of one kind that are kept."""
FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What a table raises for a record without the fields that it shows."""
NO_REGIONS: Record = {"clusters": [], "silhouette": None}


def tables_of(what: str, summaries: Sequence[Record], heads: Sequence[Record] = ()) -> list[Table]:
    """The tables of summaries of one kind, as their command makes them.

    heads: the run records of mlm-basins, which say how good the regions are.
    """
    if what == "state":
        from mlmglauber.commands.drift.table import drift_tables

        return drift_tables(summaries)
    if what == "pair":
        from mlmglauber.commands.couple.table import couple_tables

        return couple_tables(summaries)
    if what == "influence":
        from mlmglauber.commands.influence.table import influence_tables

        return influence_tables(summaries)
    if what in ("rectangle", "path"):
        from mlmglauber.commands.rect.table import production_tables, rectangle_tables

        groups = [summary for summary in summaries if summary["over"] == "group"]
        return rectangle_tables(summaries) if what == "rectangle" else production_tables(groups)
    if what == "basin":
        from mlmglauber.commands.basins.table import basin_tables

        return [*(basin_tables(head, [])[0] for head in heads), *basin_tables(NO_REGIONS, summaries)[1:]]
    from mlmglauber.commands.traps.table import attractor_tables, trap_tables

    starts = [summary for summary in summaries if summary["over"] == "starts"]
    return [*trap_tables(summaries), *(table for start in starts for table in attractor_tables(start))]


KNOWN = ("state", "path", "rectangle", "influence", "pair", "trap", "basin")
"""What summaries may be of."""
PARTS = ("chain", "distance")
"""Summaries of single chains or distances: they have no row in a table."""


class SummaryRecords:
    """The summaries of the input by what they are of, each once."""

    def __init__(self) -> None:
        self.by_kind: dict[str, list[Record]] = {}
        self.left_out = 0
        self._seen: set[bytes] = set()

    def take(self, record: Record) -> None:
        """Keep a summary for the tables; RecordError for one that its command did not write."""
        what, over = summary_of(record), record.get("over")
        if what not in KNOWN or not isinstance(over, str):
            raise RecordError(f'a summary of {as_json(what)} over {as_json(over)} is not one of this suite; give '
                              "records as their command wrote them")
        kept = self.by_kind.setdefault(what, [])
        if over in PARTS:
            return
        try:
            for table in tables_of(what, [record]):
                table.cells()
            group_warnings(what, [record])
        except FAULTS as error:
            raise RecordError(f"a summary of {what} over {over} lacks fields; give records as their command wrote "
                              "them") from error
        content = dumps(record)
        if content in self._seen:
            return
        if len(kept) >= LIMIT:
            self.left_out += 1
            return
        self._seen.add(content)
        kept.append(record)
