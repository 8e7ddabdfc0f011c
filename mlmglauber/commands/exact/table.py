"""The table of mlm-exact --table."""

from collections.abc import Sequence
from typing import Any

from mlmglauber.commands.shared.tables import Cell, Column, Table, count, figure, name, number, sentence, small
from mlmglauber.stream.records import Record


def _tmix(row: Record) -> Cell:
    """The mixing time, or the bounds on it."""
    low, high = row.get("tmix_low"), row.get("tmix_high")
    if row["tmix_exact"]:
        return Cell(str(row["tmix"]), (("", row["tmix"]), ("low", row["tmix"]), ("high", row["tmix"])))
    text = "-" if low is None else f">= {low}" if high is None else f"{low} to {high}"
    return Cell(text, (("", None), ("low", low), ("high", high)))


def _first(key: str, row: Record) -> Any:
    return row["likeliest"][0][key] if row["likeliest"] else None


def _compared(key: str, row: Record) -> Cell:
    return figure(row["compare"][key], small)


EXACT = Table("Restricted chains, exactly; times in steps", (
    Column("id", "Id of the text.", lambda row: name(row["id"])),
    Column("text", "The text.", lambda row: name(row["text"])),
    Column("n", "Its tokens.", lambda row: count(row["n"])),
    Column("states", "States of the restricted chain.", lambda row: count(row["states"])),
    Column("tau", "Temperature.", lambda row: number(row["tau"])),
    Column("eps", "Distance to stationarity in the mixing time.", lambda row: number(row["eps"])),
    Column("t_mix", "Mixing time from the worst start; with >= a lower bound, and A to B where it lies between.",
           _tmix),
    Column("t_mix of the text", "Mixing time from the text itself.", lambda row: count(row["tmix_text"])),
    Column("bound", "Bound on t_mix from influences; a dash where alpha is 1 or above.",
           lambda row: count(row["bound"])),
    Column("alpha", "Largest row sum of influences.", lambda row: number(row["alpha"], 3)),
    Column("|lambda_2|", "Second largest modulus of an eigenvalue.", lambda row: number(row["second_modulus"], 4)),
    Column("mean |delta|", "Mean |delta| over all rectangles, nats.",
           lambda row: figure(row["mean_abs_delta"], small)),
    Column("entropy production", "Nats a step; 0 for a reversible chain.",
           lambda row: figure(row["entropy_production"], small)),
    Column("TV of scans", "Total variation between the laws of the random and the systematic scan.",
           lambda row: figure(row["scan_tv"], small)),
    Column("TV to exp(PLL)", "Total variation between the stationary law and the law proportional to exp(PLL / tau).",
           lambda row: figure(row["pll_tv"], small)),
    Column("likeliest state", "The likeliest state of the stationary law.", lambda row: name(_first("text", row))),
    Column("mass of the likeliest state", "Stationary probability of the likeliest state.",
           lambda row: number(_first("probability", row), 4)),
))
COMPARED = (
    Column("states compared", "States of --compare, thinned until they are nearly independent.",
           lambda row: count(row["compare"].get("draws"))),
    Column("TV", "Total variation distance between them and the stationary law.", lambda row: _compared("tv", row)),
    Column("expected TV", "Its mean for as many independent draws of the law.",
           lambda row: figure(row["compare"].get("expected_tv"), small)),
    Column("p", "P-value of a chi-square test that they are draws of the law.", lambda row: _compared("p_value", row)),
    Column("why no comparison", "Why they cannot be compared.", lambda row: sentence(row["compare"].get("reason"))),
)
"""Columns with --compare."""
TABLES = (EXACT._replace(columns=(*EXACT.columns, *COMPARED)),)


def exact_tables(records: Sequence[Record]) -> list[Table]:
    """One row for each text and temperature."""
    return [(TABLES[0] if any("compare" in record for record in records) else EXACT).of(records)]
