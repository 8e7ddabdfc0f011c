"""The table of mlm-drift --summary."""

from collections.abc import Sequence

from mlmglauber.commands.tables import Column, Table, count, interval, number, ratio
from mlmglauber.stream.records import Record

GROUPS = Table("Drift by temperature and length", (
    Column("tau", "Temperature.", lambda row: number(row[0]["tau"])),
    Column("n", "Tokens of a text.", lambda row: count(row[0]["n"])),
    Column("chains", "Number of chains.", lambda row: count(row[0]["chains"])),
    Column("frozen", "Chains whose drift never changed.", lambda row: count(row[0]["frozen_chains"])),
    Column("plateau drift", "Mean drift over the second half of each chain's records, then over chains.",
           lambda row: number(row[0]["plateau"])),
    Column("threshold", "The drift that counts as a hit; a row for each --threshold.",
           lambda row: number(row[1]["threshold"])),
    Column("hits", "Chains that reached the threshold, of all.", lambda row: ratio(row[1]["hits"], row[0]["chains"])),
    Column("median hitting time", "Kaplan-Meier median of the first step at or above the threshold, with its 95 % "
           "interval; a dash where it was not reached.",
           lambda row: interval(row[1]["median"], row[1]["median_low"], row[1]["median_high"], 0)),
    Column("C = T / (n ln n)", "Hitting time in units of n ln n, by an exponential fit that counts censored chains, "
           "with its 95 % interval.", lambda row: interval(row[1]["c"], row[1]["c_low"], row[1]["c_high"])),
    Column("R-hat", "Rank-normalised split R-hat of drift in the second halves; near 1 when chains agree.",
           lambda row: number(row[0]["diagnostics"].get("rhat_rank"))),
    Column("ESS", "Effective sample size of drift in the second halves, over all chains (bulk).",
           lambda row: number(row[0]["diagnostics"].get("ess_bulk"), 0)),
))
TABLES = (GROUPS,)


def drift_tables(summaries: Sequence[Record]) -> list[Table]:
    """One row for each temperature, length and threshold."""
    return [GROUPS.of((group, hitting) for group in summaries if group["over"] == "group"
                      for hitting in group["hitting"])]
