"""What the summaries of groups of chains and pairs warn of."""

from collections.abc import Sequence

from mlmglauber.stream.printable import counted
from mlmglauber.stream.records import Record

RHAT = 1.05
"""The R-hat above which a page warns. Vehtari et al. (2021) advise 1.01 for results that are published."""


def group_warnings(what: str, summaries: Sequence[Record]) -> list[str]:
    """Sentences on the groups among summaries of states or pairs; none for those of other records."""
    groups = [summary for summary in summaries if summary["over"] == "group"]
    return _of_drift(groups) if what == "state" else _of_pairs(groups) if what == "pair" else []


def where(group: Record) -> str:
    """The group of a summary in words."""
    parts = [str(group["model"])] if group.get("model") else []
    parts += [f"tau {group['tau']:g}"] if group.get("tau") is not None else []
    return ", ".join(parts + ([f"n {group['n']}"] if group.get("n") is not None else []))


def _of_drift(groups: Sequence[Record]) -> list[str]:
    found = []
    frozen = [(group["frozen_chains"], group["chains"], where(group)) for group in groups if group["frozen_chains"]]
    if frozen:
        found.append("Frozen chains, whose drift did not change in the second half of their time: "
                     + "; ".join(f"{count} of {chains} at {place}" for count, chains, place in frozen) + ".")
    large = [(group["diagnostics"]["rhat_rank"], where(group)) for group in groups
             if (group["diagnostics"].get("rhat_rank") or 0) > RHAT]
    if large:
        found.append(f"R-hat is above {RHAT}: " + "; ".join(f"{rhat:.2f} at {place}" for rhat, place in large)
                     + ". These chains have not forgotten their starts, so a mean over them is not a mean over the "
                     "stationary distribution.")
    unknown = sum(group["diagnostics"].get("rhat_rank") is None for group in groups)
    if unknown:
        found.append(f"R-hat is not known for {counted(unknown, 'group')} of chains, so whether these have mixed is not "
                     "known either.")
    missed = [(hitting["censored"], hitting["hits"] + hitting["censored"], hitting["threshold"], where(group))
              for group in groups for hitting in group["hitting"] if hitting["censored"]]
    if missed:
        found.append("Chains that never reached the drift threshold: "
                     + "; ".join(f"{count} of {chains} at {place} ({threshold:g})"
                                 for count, chains, threshold, place in missed) + ".")
    return found


def _of_pairs(groups: Sequence[Record]) -> list[str]:
    found = []
    censored = [group for group in groups if group["met"] < group["pairs"]]
    if censored:
        found.append("Censored pairs, which did not meet in the time that they were run: "
                     + "; ".join(f"{group['pairs'] - group['met']} of {group['pairs']} at {where(group)}" for group in censored)
                     + ". Means and medians count them as longer than that time.")
    frozen = [group for group in groups if group["frozen"]]
    if frozen:
        found.append("Frozen pairs, which did not change in the second half of their time: "
                     + "; ".join(f"{group['frozen']} of {group['pairs']} at {where(group)}" for group in frozen) + ".")
    return found
