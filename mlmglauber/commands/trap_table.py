"""The tables of mlm-traps --summary, of chains and with --find."""

from collections.abc import Sequence

from mlmglauber.commands.tables import Column, Table, count, interval, number, share
from mlmglauber.stream.records import Record

CHAINS = Table("Traps by temperature and length", (
    Column("tau", "Temperature.", lambda group: number(group["tau"])),
    Column("n", "Tokens of a text.", lambda group: count(group["n"])),
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
    Column("observed / expected", "Length of a stay against what escape probabilities say, with its 95 % interval.",
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
TABLES = (CHAINS, FOUND)


def trap_tables(groups: Sequence[Record]) -> list[Table]:
    """One row for each temperature and length; residences in steps."""
    return [CHAINS.of(groups)]


def found_tables(summary: Record) -> list[Table]:
    """One row for all texts."""
    return [FOUND.of([summary])]
