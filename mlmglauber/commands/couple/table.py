"""The tables of mlm-couple --summary."""

from collections.abc import Iterator, Sequence
from typing import Any

from mlmglauber.commands.shared.tables import (
    Column,
    Table,
    count,
    figure,
    interval,
    name,
    number,
    p_value,
    ratio,
    sentence,
)
from mlmglauber.stream.records import Record

MODEL = Column("model", "Model of the chains.", lambda row: name(row["model"]))
COUPLING = Column("coupling", "How the two tokens of a step are drawn together.", lambda row: name(row["coupling"]))
START = Column("start", "Where the chains start.", lambda row: name(row["start"]))
LAG = Column("lag", "Steps that the first chain runs ahead.", lambda row: count(row["lag"]) if row["lag"] else "")
KIND = (MODEL, COUPLING, START, LAG)
TAU = Column("tau", "Temperature.", lambda row: number(row["tau"]))
N = Column("n", "Tokens of a text.", lambda row: count(row["n"]))

MEETINGS = Table("Meeting times, steps together", (
    *KIND, TAU, N,
    Column("met", "Pairs that met, of all.", lambda row: ratio(row["met"], row["pairs"])),
    Column("frozen", "Pairs that did not meet and changed nothing in the second half of their time.",
           lambda row: count(row["frozen"])),
    Column("median", "Kaplan-Meier median with its 95 % interval; a dash where it was not reached.",
           lambda row: interval(row["median"], row["median_low"], row["median_high"], 0)),
    Column("upper quartile", "The step by which three quarters of the pairs have met (Kaplan-Meier).",
           lambda row: number(row["upper_quartile"], 0)),
    Column("median / (n ln n)", "The median in units of n ln n.", lambda row: number(row["median_n_log_n"])),
    Column("restricted mean", "Mean of the meeting time cut at the step to which all pairs were run.",
           lambda row: number(row["restricted_mean"], 0)),
    Column("watched to step", "Steps to which every pair was run, or met.", lambda row: count(row["horizon"])),
))
GROWTH = Table("Growth with n", (
    *KIND, TAU,
    Column("lengths", "Numbers of tokens that were compared.", lambda row: name(" ".join(map(str, row["lengths"])))),
    Column("C = T / (n ln n)", "Mean meeting time in units of n ln n over all lengths, with its 95 % interval.",
           lambda row: interval(row["c"], row["c_low"], row["c_high"])),
    Column("exponential rate a site", "k of medians that grow as n ln n times e^(k n), with its 95 % interval; 0 is "
           "n ln n.", lambda row: interval(row["growth"], row["growth_low"], row["growth_high"], 3)),
    Column("p, faster than n ln n", "One-sided log-rank test of T / (n ln n), the shortest against the longest length.",
           lambda row: figure(row["growth_p"], p_value)),
    Column("why not", "Why C or the rate has no value.",
           lambda row: sentence(row["c_reason"] or row["growth_reason"])),
))
CROSSOVER = Table("Crossover: the temperature at which the median passes the budget", (
    *KIND, N,
    Column("budget / (n ln n)", "A --budget.", lambda row: number(row["budget"], 1)),
    Column("tau*", "The temperature at which half of the pairs take longer than the budget, with its 95 % interval.",
           lambda row: interval(row["crossover"], row["crossover_low"], row["crossover_high"])),
    Column("why no crossover", "Why it has no value.", lambda row: sentence(row["crossover_reason"])),
))
TREND = Table("Rise of the crossover", (
    *KIND,
    Column("budget / (n ln n)", "A --budget.", lambda row: number(row["budget"], 1)),
    Column("tau* a doubling of n", "How much the crossover rises for each doubling of n, with its 95 % interval.",
           lambda row: interval(row["per_doubling"], row["per_doubling_low"], row["per_doubling_high"])),
    Column("why no rise", "Why it has no value.", lambda row: sentence(row["trend_reason"])),
))
BOUNDS = Table("L-lag bounds", (
    *KIND, TAU, N,
    Column("bound(0)", "Bound on the distance to stationarity at step 0; a bound above 1 excludes nothing.",
           lambda row: number(row["first"])),
    Column("eps", "Distance to stationarity, an --eps.", lambda row: number(row["eps"])),
    Column("t_mix(eps) <=", "First step at which the estimated bound is at eps or below.",
           lambda row: number(row["t"], 0)),
    Column("t_mix 95 % end", "Upper end of the 95 % interval of t_mix.", lambda row: number(row["t_high"], 0)),
    Column("why no bound", "Why it has no value.", lambda row: sentence(row["bound_reason"])),
))
TABLES = (MEETINGS, GROWTH, CROSSOVER, TREND, BOUNDS)


def couple_tables(summaries: Sequence[Record]) -> list[Table]:
    """Meeting times, their growth with n, the crossover and, of lagged pairs, the bounds."""
    over: dict[str, list[Record]] = {kind: [row for row in summaries if row["over"] == kind]
                                     for kind in ("group", "tau", "n", "all")}
    return [MEETINGS.of(over["group"]), GROWTH.of(row for row in over["tau"] if len(row["lengths"]) > 1),
            CROSSOVER.of(row for row in over["n"] if len(row["taus"]) > 1),
            TREND.of(row for row in over["all"] if len(row["lengths"]) > 1),
            BOUNDS.of(row for group in over["group"] if group["lag"] for row in _bounds(group))]


def _bounds(group: Record) -> Iterator[dict[str, Any]]:
    first = None if group["bound"] is None else group["bound"][0]["tv"]
    for mixing in group["tmix"] or [{"eps": None, "t": None, "t_high": None}]:
        yield {**group, **mixing, "first": first}
