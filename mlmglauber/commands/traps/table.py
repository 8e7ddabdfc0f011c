"""The tables of mlm-traps --summary and mlm-traps find --summary."""

from collections.abc import Sequence

from mlmglauber.commands.shared.tables import (
    NOTHING,
    Column,
    Table,
    count,
    interval,
    name,
    number,
    share,
)
from mlmglauber.stream.records import Record

LAW = (
    Column("model", "Model of the chains.", lambda row: name(row["model"] or NOTHING)),
    Column("law", "What else distinguishes the chains: precision and hash of the model, scan, start, the only words "
           "that may be drawn, the sites that stay fixed, a schedule of temperatures and its piece.",
           lambda row: name(law(row))),
)
CHAINS = Table("Traps by temperature and length", (
    Column("tau", "Temperature.", lambda row: number(row["tau"])),
    Column("n", "Tokens of a text.", lambda row: count(row["n"])),
    *LAW,
    Column("chains", "Number of chains.", lambda row: count(row["chains"])),
    Column("trapped", "Chains that had a trap.", lambda row: count(row["chains_trapped"])),
    Column("traps", "Number of traps.", lambda row: count(row["count"])),
    Column("per 1,000 steps", "Traps in a thousand steps.", lambda row: number(row["per_1000"])),
    Column("time trapped", "Share of all steps that lie in traps.", lambda row: share(row["trapped"])),
    Column("median residence", "Kaplan-Meier median of the steps that a trap lasts.",
           lambda row: number(row["residence"]["0.5"], 0)),
    Column("longest", "Steps of the longest trap.", lambda row: number(row["longest"], 0)),
    Column("perfect", "Share of traps in which every token is the likeliest at its site.",
           lambda row: share(row["perfect"])),
    Column("median margin", "Median over traps of the margin of their most occupied state, nats.",
           lambda row: number(row["margin_median"])),
    Column("observed / expected", "Steps at a state, after the first --min-steps, for one exit, against what exact "
           "escape probabilities say, with a 95 % interval.",
           lambda row: interval(row["ratio"], row["ratio_low"], row["ratio_high"])),
    Column("states", "Different states among the traps' most occupied ones.", lambda row: count(row["distinct"])),
    Column("recurring states", "Of these states, those that were trapped in more than once.",
           lambda row: count(row["recurring_states"])),
))
ATTRACTORS = Table("Where texts lead at tau 0", (
    Column("texts", "Texts that were followed.", lambda row: count(row["count"])),
    Column("fixed points", "Different fixed points.", lambda row: count(row["fixed_points"])),
    Column("cycles", "Different cycles.", lambda row: count(row["cycles"])),
    Column("without end", "Texts that reached no end within --max-sweeps.", lambda row: count(row["unfinished"])),
    Column("largest basin", "Maximum number of texts that lead to one end.", lambda row: count(row["largest_basin"])),
    Column("sweeps", "Maximum number of sweeps to an end.", lambda row: count(row["sweeps"])),
    Column("least margin", "Smallest margin of a fixed point, nats.", lambda row: number(row["margin"]["0"])),
    Column("median margin", "Median margin of the fixed points, nats.", lambda row: number(row["margin"]["0.5"])),
    Column("largest margin", "Largest margin of a fixed point, nats.", lambda row: number(row["margin"]["1"])),
))
SLOWNESS = Table("Growth of stays with 1 / tau: steps = exp(a + b / tau)", (
    Column("n", "Tokens of a text.", lambda row: count(row["n"])),
    *LAW,
    Column("temperatures", "Temperatures of the chains.", lambda row: name(listed(row["taus"], 2))),
    Column("steps in a trap", "Mean steps until a trap is left, beyond the first --min-steps, at each temperature.",
           lambda row: name(listed([at["residence"] for at in row["at"]], 0))),
    Column("b", "Slope of the logarithm of these steps on 1 / tau, nats, with its 95 % interval over texts.",
           lambda row: interval(row["residence_slope"], row["residence_slope_low"],
                                  row["residence_slope_high"])),
    Column("1 / escape", "Median of 1 / escape at each temperature, exact, over the states of the traps of all "
           "temperatures, weighed by the steps of their traps.",
           lambda row: name(listed([at["expected"] for at in row["at"]], 0))),
    Column("b of a state", "Median over these states of the slope of log(1 / escape), nats, with quartiles.",
           lambda row: interval(row["escape_slope"], *(row["escape_slope_quartiles"] or (None, None)))),
    Column("median margin", "Median margin of these states, nats: what b of a state tends to as tau goes to 0.",
           lambda row: number(row["margin_median"])),
))
TABLES = (CHAINS, SLOWNESS, ATTRACTORS)


def law(row: Record) -> str:
    """What distinguishes a row's chains besides model, temperature and length."""
    parts = [row.get("precision"), row.get("hash"), row.get("scan"), row.get("init")]
    names = ("allow", "ban", "top_k", "top_p", "min_p", "freeze", "schedule", "piece")
    parts += [f"{key} {row[key]}" for key in names if row.get(key) not in (None, [])]
    return " ".join(str(part) for part in parts if part) or NOTHING


def listed(values: Sequence[float | None], digits: int) -> str:
    """Several numbers in one cell, a dash for what is not known."""
    return " ".join(NOTHING if value is None else f"{value:.{digits}f}" for value in values)


def trap_tables(groups: Sequence[Record]) -> list[Table]:
    """One row for each law, temperature and length, then one for each length of several temperatures; in steps."""
    lengths = [group for group in groups if group["over"] == "n"]
    chains = CHAINS.of(group for group in groups if group["over"] == "group")
    return [chains, SLOWNESS.of(lengths)] if lengths else [chains]


def attractor_tables(summary: Record) -> list[Table]:
    """One row for all texts."""
    return [ATTRACTORS.of([summary])]
