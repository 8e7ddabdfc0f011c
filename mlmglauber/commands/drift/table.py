"""The tables of mlm-drift --summary."""

from collections.abc import Sequence
from typing import Any

from mlmglauber.commands.shared.law_columns import law_columns
from mlmglauber.commands.shared.tables import (
    Cell,
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

TAU = Column("tau", "Temperature.", lambda row: number(row[0]["tau"]))
N = Column("n", "Tokens of a text.", lambda row: count(row[0]["n"]))
LAW = law_columns(lambda row: row[0])


def _between(key: str, digits: int) -> Any:
    """An interval-censored value: its upper end, with "<=" if the lower end is no more than one step."""

    def cell(row: Any) -> Cell:
        part = row[1]
        value, least = part[key], part[f"{key}_at_least"]
        shown = interval(value, part[f"{key}_low"], part[f"{key}_high"], digits)
        text = shown.text
        if value is not None and least is not None and least < value and least <= 1.000001 * _step(row[0], key):
            text = f"<= {number(value, digits).text}" if text.endswith(" [-, -]") else f"<= {text}"
        return Cell(text, (*shown.values, ("at least", least)))

    return cell


def _step(row: Record, key: str) -> float:
    """One step in the unit of a value: a median is in steps, C in units of n ln n."""
    from mlmglauber.measures.statistics.scaling import n_log_n

    return 1.0 if key == "median" else 1.0 / (n_log_n(row.get("n") or 0) or 1.0)


THRESHOLD = Column("threshold", "The drift that counts as a hit; a row for each --threshold.",
                   lambda row: number(row[1]["threshold"]))
C = "Hitting time in units of n ln n, at the latest times that the records allow"
GROUPS = Table("Drift by temperature and length", (
    *LAW, TAU, N,
    Column("chains", "Number of chains; of two coupled ones the first.", lambda row: count(row[0]["chains"])),
    Column("frozen", "Chains whose drift did not change in the second half of their time.",
           lambda row: count(row[0]["frozen_chains"])),
    Column("plateau drift", "Mean drift over the second half of each chain's time, then over chains, with its 95 % "
           "interval over texts.",
           lambda row: interval(row[0]["plateau"], row[0]["plateau_low"], row[0]["plateau_high"])),
    THRESHOLD,
    Column("hits", "Chains that reached the threshold, of all.",
           lambda row: ratio(row[1]["hits"], row[1]["hits"] + row[1]["censored"])),
    Column("seen every", "The longest time between two records of a chain, steps; 1 where every change is recorded.",
           lambda row: count(row[1]["resolution"])),
    Column("median hitting time", "Kaplan-Meier median of the steps from a chain's first record to the first one at "
           "or above the threshold, with its 95 % interval; a dash where it was not reached. <= where half of the "
           "chains were at the threshold by their second record, which is an upper bound only.",
           _between("median", 0)),
    Column("C = T / (n ln n)", f"{C}, with its 95 % interval; <= as of the median.", _between("c", 2)),
    Column("R-hat", "Rank-normalised split R-hat of the distances to one reference for all chains, in the second "
           "halves; near 1 when chains agree.", lambda row: number(row[0]["diagnostics"].get("rhat_rank"))),
    Column("ESS", "Effective sample size of these distances over all chains (bulk); a dash below 10 draws a chain, or "
           "where it is not known.", lambda row: number(row[0]["diagnostics"].get("ess_bulk"), 0)),
))
GROWTH = Table("Growth of hitting times with n", (
    *LAW, TAU,
    Column("lengths", "Numbers of tokens that were compared.", lambda row: name(" ".join(map(str, row[0]["lengths"])))),
    THRESHOLD,
    Column("C = T / (n ln n)", f"{C}, over all lengths, with its 95 % interval.",
           lambda row: interval(row[1]["c"], row[1]["c_low"], row[1]["c_high"])),
    Column("exponential rate a site", "k of medians that grow as n ln n times e^(k n), with its 95 % interval; 0 is "
           "n ln n.", lambda row: interval(row[1]["growth"], row[1]["growth_low"], row[1]["growth_high"], 3)),
    Column("p, faster than n ln n", "One-sided log-rank test of T / (n ln n), the shortest against the longest length.",
           lambda row: figure(row[1]["growth_p"], p_value)),
    Column("why not", "Why C or the rate has no value.",
           lambda row: sentence(row[1]["c_reason"] or row[1]["growth_reason"])),
))


def _ends(key: str) -> Any:
    return lambda row: interval(row[0][key], row[0][f"{key}_low"], row[0][f"{key}_high"])


PLL = Table("Pseudo-log-likelihood a token, nats: mean over chains, 95 % interval over texts", (
    *LAW, TAU, N,
    Column("at the start", "Mean over the first records of the chains.", _ends("pll_start")),
    Column("in the second half", "Mean over the second half of each chain's time.", _ends("pll_plateau")),
    Column("change", "The second less the first, chain by chain: near 0 or above if chains move between likely texts, "
           "far below if they dissolve into noise.", _ends("pll_change")),
))
TABLES = (GROUPS, GROWTH, PLL)


def drift_tables(summaries: Sequence[Record]) -> list[Table]:
    """A row for each law, temperature, length and threshold; growth over several lengths; pll where it was recorded."""
    groups = [summary for summary in summaries if summary["over"] == "group"]
    taus = [summary for summary in summaries if summary["over"] == "tau" and len(summary["lengths"]) > 1]
    return [GROUPS.of((group, hitting) for group in groups for hitting in group["hitting"]),
            GROWTH.of((tau, hitting) for tau in taus for hitting in tau["hitting"]),
            PLL.of((group, None) for group in groups if "pll_start" in group)]
