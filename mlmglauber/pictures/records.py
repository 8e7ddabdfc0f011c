"""Reads records into what their picture needs."""

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from mlmglauber.pictures.kinds import KINDS, Uses, open_kind, summary_of, uses
from mlmglauber.stream.errors import MlmError, RecordError
from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import has_masks

if TYPE_CHECKING:
    from mlmglauber.pictures.change_grid import ChangeGrids
    from mlmglauber.pictures.panel import Picture
    from mlmglauber.pictures.thinned_lists import ThinnedLists
    from mlmglauber.stream.records import Record


class PictureRecords:
    """Counts records and keeps what each kind of picture needs of them."""

    def __init__(self, kind: str | None, color_by: str = "age", preferred: Collection[str] = ()) -> None:
        """kind: the kind of picture that --kind names, None where the records decide.

        color_by: what the colours of a space-time picture mean, "age" or "logp". preferred: kinds that are drawn where
        the records make one of them and also others.
        """
        self.kind, self.color_by, self.preferred = kind, color_by, preferred
        self.types: Counter[str] = Counter()
        """Number of records by type."""
        self.default: dict[str, None] = {}
        """Kinds of pictures that are made of these records by default."""
        self.series: dict[str, ThinnedLists | ChangeGrids] = {}
        """The series to draw, by kind of picture."""
        self.masked = 0
        """Number of states with masked sites, which have neither a text nor a drift nor a place in a plane."""

    def take(self, record: "Record") -> None:
        """Count a record and keep what its picture needs; RecordError where that is missing."""
        what = str(record.get("type", "of no type"))
        self.types[f"summaries of {summary_of(record)}" if what == "summary" else what] += 1
        if has_masks(record):
            self.masked += 1
            return
        kinds: Uses = uses(record)
        self.default |= dict.fromkeys(kinds.default)
        if self.kind is None:
            names = kinds.default or kinds.other
        else:
            names = (self.kind,) if self.kind in (*kinds.default, *kinds.other) else ()
        for name in names:
            self._keep(name, record)

    def _keep(self, name: str, record: "Record") -> None:
        kind = open_kind(name)
        if name not in self.series:
            self.series[name] = self._empty(name, kind.LIMIT)
        try:
            items = list(kind.items(record))
            for key, item in items:
                self.series[name].add(key, item)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = (error.args[0] if isinstance(error, ValueError) else f'no "{error.args[0]}"'
                    if isinstance(error, KeyError) else "a field has the wrong type")
            raise RecordError(f"a record of type {record['type']} cannot be drawn ({what}); give records as their "
                              "command wrote them") from error

    def _empty(self, name: str, limit: int) -> "ThinnedLists | ChangeGrids":
        """An empty container for what a kind of picture keeps."""
        if name == "spacetime":
            from mlmglauber.pictures.change_grid import ChangeGrids

            return ChangeGrids(self.color_by)
        from mlmglauber.pictures.thinned_lists import ThinnedLists

        return ThinnedLists(limit)

    def picture(self, threshold: float) -> "Picture":
        """The picture of the records; MlmError if they make none, or several without --kind."""
        if self.kind is None and len(self._defaults()) > 1:
            raise MlmError(f"these records ({self._counts()}) can be drawn as {' and as '.join(self.default)}; choose "
                           "with --kind")
        if not self.types:
            raise MlmError("the input has no records; pipe in what another command of the suite writes")
        name = self.name
        if name is None:
            more = ("; states need mlm-embed and mlm-drift, or mlm-embed --pca 2, or every change, of mlm-sample "
                    "--on-change" if self.types["state"] else "")
            more += "; states with masked sites were left out" if self.masked else ""
            more += "; summaries of mlm-rect --path are not drawn" if self.types["summaries of path"] else ""
            raise MlmError(f"nothing to draw in {self._counts()}; mlm-plot(1) lists what can be drawn{more}")
        series = self.series[name].lists if name in self.series else {}
        picture = open_kind(name).picture(series, threshold) if series else None
        if picture is None or not picture.panels:
            why = "".join(f"; {note}" for note in picture.notes) if picture is not None else ""
            raise MlmError(f"nothing for --kind {name} in {self._counts()}{why}; it draws {KINDS[name]}")
        return picture

    def _defaults(self) -> list[str]:
        """The kinds of pictures that are made by default: of several, those that are preferred."""
        return [name for name in self.default if name in self.preferred] or list(self.default)

    @property
    def name(self) -> str | None:
        """The kind of the picture. States that no other kind draws make a space-time picture if they can."""
        grids: Any = self.series.get("spacetime")
        other = "spacetime" if grids is not None and grids.complete else None
        return self.kind or next(iter(self._defaults()), None) or other

    def notes(self) -> list[str]:
        """Sentences on states and series that are not drawn."""
        notes = []
        if self.masked:
            notes.append(f"{counted(self.masked, 'state')} with masked sites {were(self.masked)} left out")
        name = self.name
        if name in self.series:
            notes += self.series[name].notes(name)
        return notes

    def _counts(self) -> str:
        """The number of records of each type, as words."""
        return ", ".join(f"{count} {what}" for what, count in self.types.items())
