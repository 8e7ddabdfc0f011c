"""The tables of mlm-traps --summary, of chains and with --find."""

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
    Column("model", "Model of the chains.", lambda group: name(group["model"] or NOTHING)),
    Column("law", "What else makes chains incomparable: precision and hash of the model, scan, start, the only "
           "words that may be drawn and the sites that do not move.", lambda group: name(law(group))),
)
CHAINS = Table("Traps by temperature and length", (
    Column("tau", "Temperature.", lambda group: number(group["tau"])),
    Column("n", "Tokens of a text.", lambda group: count(group["n"])),
    *LAW,
    Column("chains", "Number of chains.", lambda group: count(group["chains"])),
    Column("trapped", "Chains that had a trap.", lambda group: count(group["chains_trapped"])),
    Column("traps", "Number of traps.", lambda group: count(group["count"])),
    Column("per 1,000 steps", "Traps in a thousand steps.", lambda group: number(group["per_1000"])),
    Column("time trapped", "Share of all steps that lie in traps.", lambda group: share(group["trapped"])),
    Column("median residence", "Kaplan-Meier median of the steps that a trap lasts.",
           lambda group: number(group["residence"]["0.5"], 0)),
    Column("longest", "Steps of the longest trap.", lambda group: number(group["longest"], 0)),
    Column("perfect", "Share of traps in which every token is the likeliest at its site.",
           lambda group: share(group["perfect"])),
    Column("median margin", "Median over traps of the margin of their most occupied state, nats.",
           lambda group: number(group["margin_median"])),
    Column("observed / expected", "Steps at a state, after the first --min-steps, for one exit, against what exact "
           "escape probabilities say, with a 95 % interval.",
           lambda group: interval(group["ratio"], group["ratio_low"], group["ratio_high"])),
    Column("states", "Different states among the traps' most occupied ones.", lambda group: count(group["distinct"])),
    Column("recurring states", "Of these states, those that were trapped in more than once.",
           lambda group: count(group["recurring_states"])),
))
FOUND = Table("Where texts lead at tau 0", (
    Column("texts", "Texts that were followed.", lambda found: count(found["count"])),
    Column("fixed points", "Different fixed points.", lambda found: count(found["fixed_points"])),
    Column("cycles", "Different cycles.", lambda found: count(found["cycles"])),
    Column("without end", "Texts that were given up after --max-sweeps.", lambda found: count(found["unfinished"])),
    Column("largest basin", "Texts that lead to one end, at most.", lambda found: count(found["largest_basin"])),
    Column("sweeps", "Sweeps to an end, at most.", lambda found: count(found["sweeps"])),
    Column("least margin", "Smallest margin of a fixed point, nats.", lambda found: number(found["margin"]["0"])),
    Column("median margin", "Median margin of the fixed points, nats.", lambda found: number(found["margin"]["0.5"])),
    Column("largest margin", "Largest margin of a fixed point, nats.", lambda found: number(found["margin"]["1"])),
))
SLOWNESS = Table("Growth of stays with 1 / tau: steps = exp(a + b / tau)", (
    Column("n", "Tokens of a text.", lambda found: count(found["n"])),
    *LAW,
    Column("temperatures", "Temperatures that were looked at.", lambda found: name(listed(found["taus"], 2))),
    Column("steps in a trap", "Mean steps until a trap is left, beyond the first --min-steps, at each temperature.",
           lambda found: name(listed([at["residence"] for at in found["at"]], 0))),
    Column("b", "Slope of the logarithm of these steps on 1 / tau, nats, with its 95 % interval over texts.",
           lambda found: interval(found["residence_slope"], found["residence_slope_low"],
                                  found["residence_slope_high"])),
    Column("1 / escape", "Median of 1 / escape at each temperature, exact, over the states of the traps of all "
           "temperatures, weighed by the steps of their traps.",
           lambda found: name(listed([at["expected"] for at in found["at"]], 0))),
    Column("b of a state", "Median over these states of the slope of log(1 / escape), nats, with quartiles.",
           lambda found: interval(found["escape_slope"], *(found["escape_slope_quartiles"] or (None, None)))),
    Column("median margin", "Median margin of these states, nats: what b of a state tends to as tau goes to 0.",
           lambda found: number(found["margin_median"])),
))
TABLES = (CHAINS, SLOWNESS, FOUND)


def law(group: Record) -> str:
    """What makes a row's chains what they are, beside model, temperature and length."""
    parts = [group.get("precision"), group.get("hash"), group.get("scan"), group.get("init")]
    parts += [f"{key} {group[key]}" for key in ("allow", "freeze") if group.get(key)]
    return " ".join(str(part) for part in parts if part) or NOTHING


def listed(values: Sequence[float | None], digits: int) -> str:
    """Numbers in one cell."""
    return " ".join(NOTHING if value is None else f"{value:.{digits}f}" for value in values)


def trap_tables(groups: Sequence[Record]) -> list[Table]:
    """One row for each law, temperature and length, then one for each length of several temperatures; in steps."""
    lengths = [group for group in groups if group["over"] == "n"]
    chains = CHAINS.of(group for group in groups if group["over"] == "group")
    return [chains, SLOWNESS.of(lengths)] if lengths else [chains]


def found_tables(summary: Record) -> list[Table]:
    """One row for all texts."""
    return [FOUND.of([summary])]
