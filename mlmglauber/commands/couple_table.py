"""The tables of mlm-couple --summarize for people."""

from collections.abc import Sequence
from typing import Any

from mlmglauber.commands.tables import interval, number, rendered
from mlmglauber.stream.records import Record


def couple_tables(summaries: Sequence[Record], color: bool) -> bytes:
    """Meeting times, their growth with n, the crossover and, of lagged pairs, the bounds; empty tables are left out."""
    tables = [_meetings, _growth, _crossovers, _trends, _bounds]
    return b"".join(rendered(table, color) for make in tables if (table := make(summaries)).row_count)


def _table(title: str, *columns: str) -> Any:
    from rich.table import Table

    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _over(summaries: Sequence[Record], what: str) -> list[Record]:
    return [summary for summary in summaries if summary["over"] == what]


def _kind(summary: Record) -> str:
    lag = f", lag {summary['lag']}" if summary["lag"] else ""
    return f"{summary['coupling']}, {summary['start']}{lag}"


def _meetings(summaries: Sequence[Record]) -> Any:
    table = _table("Meeting times, steps together", "coupling, start", "tau", "n", "met", "frozen", "median",
                   "upper quartile", "median / (n ln n)", "restricted mean", "to step")
    for group in _over(summaries, "group"):
        table.add_row(_kind(group), number(group["tau"]), str(group["n"]), f"{group['met']}/{group['pairs']}",
                      str(group["frozen"]), interval(group["median"], group["median_low"], group["median_high"], 0),
                      number(group["upper_quartile"], 0),
                      number(group["median_n_log_n"]), number(group["restricted_mean"], 0), str(group["horizon"]))
    return table


def _growth(summaries: Sequence[Record]) -> Any:
    table = _table("Growth with n", "coupling, start", "tau", "lengths", "C = T / (n ln n)", "exponential rate a site",
                   "p, faster than n ln n", "why not")
    for row in _over(summaries, "tau"):
        if len(row["lengths"]) > 1:
            table.add_row(_kind(row), number(row["tau"]), " ".join(map(str, row["lengths"])),
                          interval(row["c"], row["c_low"], row["c_high"]),
                          interval(row["growth"], row["growth_low"], row["growth_high"], 3),
                          _p_value(row["growth_p"]), row["c_reason"] or row["growth_reason"] or "")
    return table


def _p_value(p: float | None) -> str:
    return "< 0.0001" if p is not None and p < 1e-4 else number(p, 4)


def _crossovers(summaries: Sequence[Record]) -> Any:
    table = _table("Crossover: the temperature at which the median passes the budget", "coupling, start", "n",
                   "budget / (n ln n)", "tau*", "why not")
    for row in _over(summaries, "n"):
        if len(row["taus"]) > 1:
            table.add_row(_kind(row), str(row["n"]), number(row["budget"], 1),
                          interval(row["crossover"], row["crossover_low"], row["crossover_high"]),
                          row["crossover_reason"] or "")
    return table


def _trends(summaries: Sequence[Record]) -> Any:
    table = _table("Rise of the crossover", "coupling, start", "budget / (n ln n)", "tau* a doubling of n", "why not")
    for row in _over(summaries, "all"):
        if len(row["lengths"]) > 1:
            table.add_row(_kind(row), number(row["budget"], 1),
                          interval(row["per_doubling"], row["per_doubling_low"], row["per_doubling_high"]),
                          row["trend_reason"] or "")
    return table


def _bounds(summaries: Sequence[Record]) -> Any:
    table = _table("L-lag bounds", "coupling, start", "tau", "n", "bound(0)", "eps", "t_mix(eps) <=", "95 % end",
                   "why not")
    for group in _over(summaries, "group"):
        if not group["lag"]:
            continue
        first = None if group["bound"] is None else group["bound"][0]["tv"]
        for mixing in group["tmix"] or [{"eps": None, "t": None, "t_high": None}]:
            table.add_row(_kind(group), number(group["tau"]), str(group["n"]), number(first), number(mixing["eps"]),
                          number(mixing["t"], 0), number(mixing["t_high"], 0), group["bound_reason"] or "")
    return table
