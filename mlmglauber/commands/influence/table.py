"""The tables of mlm-influence --summary."""

from collections.abc import Sequence

from mlmglauber.commands.shared.tables import (
    Cell,
    Column,
    Table,
    count,
    figure,
    interval,
    number,
    sentence,
)
from mlmglauber.stream.records import Record

N = Column("n", "Tokens of a text.", lambda row: count(row["n"]))


def _bracket(key: str) -> "Column":
    what = {"row": "largest row sum", "column": "largest column sum", "spectral": "spectral radius"}[key]

    def cell(row: Record) -> Cell:
        bracket = row["crossing"] and row["crossing"][key]
        low, high = (bracket["low"], bracket["high"]) if bracket else (None, None)
        parts = ["-" if end is None else f"{end:.2f}" for end in (low, high)]
        return Cell(f"{parts[0]} to {parts[1]}", (("low", low), ("high", high)))

    return Column(f"tau where the {what} is 1", f"The temperatures between which the {what} of sampled influences "
                  "passes 1; a dash for an end that was not reached.", cell)


GROUPS = Table("Influences by temperature and length, lower estimates", (
    Column("tau", "Temperature.", lambda row: number(row["tau"])), N,
    Column("contexts", "Contexts whose influences were pooled.", lambda row: count(row["count"])),
    Column("alpha", "Largest row sum of the entrywise largest influences; at 1 or above the criterion is refuted.",
           lambda row: number(row["alpha_row"], 3)),
    Column("alpha by columns", "Largest column sum.", lambda row: number(row["alpha_column"], 3)),
    Column("spectral radius", "Spectral radius of the same matrix.", lambda row: number(row["alpha_spectral"], 3)),
    Column("t_mix if alpha", "Bound on the mixing time, steps, if alpha were the largest row sum; a dash where "
           "it is 1 or above.", lambda row: number(row["tmix_if_alpha"], 0)),
    Column("contraction", "Mean growth in a step of the distance of typical pairs that differ at one site, with its 95 "
           "% interval; below 1 they approach each other.",
           lambda row: interval(row["contraction"], row.get("contraction_low"), row.get("contraction_high"), 3)),
    Column("alpha at most", "Bound on alpha that the model's head proves for every text of this length.",
           lambda row: figure(row["certified_alpha"], lambda value: f"{value:.3g}")),
    Column("t_mix at most", "Mixing time that this proves, steps; a dash where the bound is 1 or above.",
           lambda row: number(row["certified_tmix"], 0)),
))
LENGTHS = Table("Where sampled influences pass 1", (
    N, _bracket("row"), _bracket("column"), _bracket("spectral"),
    Column("proved above tau", "Above this temperature the model's head proves fast mixing of every text of this "
           "length.",
           lambda row: figure(row["certified_tau"], lambda value: f"{value:.3g}")),
    Column("why no crossing", "Why no crossing was searched for.", lambda row: sentence(row.get("crossing_reason"))),
))
TABLES = (GROUPS, LENGTHS)


def influence_tables(summaries: Sequence[Record]) -> list[Table]:
    """A row for each temperature and length, then one for each length."""
    return [GROUPS.of(row for row in summaries if row["over"] == "group"),
            LENGTHS.of(row for row in summaries if row["over"] == "length")]
