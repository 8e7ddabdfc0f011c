"""What the summaries of groups of chains and pairs warn of."""

from collections.abc import Sequence

from mlmglauber.stream.printable import counted, were
from mlmglauber.stream.records import Record

RHAT = 1.05
"""The R-hat above which a page warns. Vehtari et al. (2021) advise 1.01 for results that are published."""
LISTED = 6
"""Maximum number of groups that a warning lists."""


def group_warnings(what: str, summaries: Sequence[Record]) -> list[str]:
    """Sentences on the groups among summaries of states or pairs; none for those of other records."""
    groups = [summary for summary in summaries if summary["over"] == "group"]
    return _of_drift(groups) if what == "state" else _of_pairs(groups) if what == "pair" else []


def where(group: Record, groups: Sequence[Record]) -> str:
    """The group of a summary in words; its model only where there are several."""
    several = len({str(other.get("model")) for other in groups}) > 1
    parts = [str(group["model"])] if several and group.get("model") else []
    parts += [f"tau {group['tau']:g}"] if group.get("tau") is not None else []
    return ", ".join(parts + ([f"n {group['n']}"] if group.get("n") is not None else []))


def _listed(parts: Sequence[str]) -> str:
    """The first LISTED of several parts of a sentence, and the number of the others."""
    others = len(parts) - LISTED
    more = f"; and in {counted(others, 'other group')}, see the table" if others > 0 else ""
    return "; ".join(parts[:LISTED]) + more


def _of_drift(groups: Sequence[Record]) -> list[str]:
    found = []
    frozen = [f"{group['frozen_chains']} of {group['chains']} at {where(group, groups)}" for group in groups
              if group["frozen_chains"]]
    if frozen:
        found.append("Frozen chains, whose drift did not change in the second half of their time: "
                     f"{_listed(frozen)}.")
    known = {where(group, groups): group["diagnostics"].get("rhat_rank") for group in groups}
    large = sorted(((rhat, place) for place, rhat in known.items() if rhat is not None and rhat > RHAT), reverse=True)
    if large:
        found.append(f"R-hat is above {RHAT} in {len(large)} of {counted(len(groups), 'group')} of chains: "
                     f"{_listed([f'{rhat:.2f} at {place}' for rhat, place in large])}. These chains have not forgotten "
                     "their starts, so a mean over them is not a mean over the stationary distribution.")
    unknown = sum(rhat is None for rhat in known.values())
    if unknown:
        found.append(f"R-hat is not known for {counted(unknown, 'group')} of chains, so it is not known either whether "
                     "these have mixed.")
    missed = [f"{hitting['censored']} of {hitting['hits'] + hitting['censored']} at {where(group, groups)}, drift "
              f"{hitting['threshold']:g}" for group in groups for hitting in group["hitting"] if hitting["censored"]]
    if missed:
        found.append(f"Chains that never reached the drift threshold: {_listed(missed)}.")
    return found


def _of_pairs(groups: Sequence[Record]) -> list[str]:
    found = []
    pairs = sum(group["pairs"] for group in groups)
    censored = sum(group["pairs"] - group["met"] for group in groups)
    if censored:
        most = [f"{group['pairs'] - group['met']} of {group['pairs']} at {where(group, groups)}" for group in groups
                if group["met"] < group["pairs"]]
        found.append(f"{censored} of {counted(pairs, 'pair')} of chains {were(censored)} censored, which means that "
                     f"they did not meet in the time that they were run: {_listed(most)}. Medians count them as longer "
                     "than that time.")
    frozen = [f"{group['frozen']} of {group['pairs']} at {where(group, groups)}" for group in groups if group["frozen"]]
    if frozen:
        found.append(f"Frozen pairs, which did not change in the second half of their time: {_listed(frozen)}.")
    return found
