"""The summary records of mlm-traps --summary."""

from collections.abc import Mapping
from math import isfinite

from mlmglauber.commands.shared.nullable import nullable, optional_reason, with_reasons
from mlmglauber.measures.traps.summary import StateEscapes, TrapGroup, slowness, trap_margins
from mlmglauber.stream.records import Record

RECURRING = 10
"""Maximum number of recurring states in a summary."""


def summarise(tau: float | None, n: int | None, group: TrapGroup) -> Record:
    """The summary of one temperature and length.

    trapped: share of all steps that were made in traps. per_1000: traps per thousand steps. recurring: states of
    several traps.
    """
    count, steps, again = len(group.residences), group.steps, group.recurring()
    return {
        "type": "summary", "of": "trap", "over": "group", "tau": tau, "n": n, "chains": group.chains,
        "texts": len(group.texts), "steps": steps, "count": count, "chains_trapped": len(group.trapped_chains),
        **nullable("trapped", sum(group.residences) / steps if steps else None, "no chain has two records"),
        "per_1000": 1000 * count / steps if steps else None,
        "residence": {f"{q:g}": time for q, time in group.quantiles().items()},
        "longest": max(group.residences, default=None),
        "censored": sum(group.censored), "resolution": group.resolution,
        "distinct": len(group.states), "recurring_states": len(again),
        "shared_states": sum(len(known.texts) > 1 for _, known in again),
        "recurring": [{"text": known.text, "ids": list(state), "traps": known.traps, "steps": known.steps,
                       "chains": len(known.chains), "texts": len(known.texts), "margin": known.margin}
                      for state, known in again[:RECURRING]],
        **_margin_fields(group),
    }


def _margin_fields(group: TrapGroup) -> Record:
    """The share of perfect traps, their margins, and their stays against the geometric law."""
    found = trap_margins(group)
    if found is None:
        names = ("perfect", "margin_median", "expected_median", "ratio", "ratio_low", "ratio_high")
        return dict.fromkeys(names) | {"reason": "no model" if group.residences else "no trap"}
    margin, expected = (value if isfinite(value) else None for value in (found.margin, found.expected))
    return {
        "perfect": found.perfect, "margin_median": margin, "expected_median": expected,
        "ratio": found.ratio.value, "ratio_low": found.ratio.low, "ratio_high": found.ratio.high,
        "ratio_steps": found.steps, "ratio_exits": found.exits, **optional_reason("ratio_reason", found.ratio.reason),
        **optional_reason("margin_reason", None if margin is not None else
                          "a token of the median trap is never drawn"),
        **optional_reason("expected_reason", None if expected is not None else "the median trap is never left"),
    }


def slowness_fields(groups: Mapping[float, TrapGroup], min_steps: int, escapes: StateEscapes | None) -> Record:
    """How the stays of one length grow with 1 / tau; groups: by temperature; escapes: None without a model."""
    found = slowness(groups, min_steps, escapes)
    return {
        "taus": list(groups), "texts": found.texts,
        "residence_slope": found.slope.value, "residence_slope_low": found.slope.low,
        "residence_slope_high": found.slope.high, "residence_intercept": found.intercept,
        **optional_reason("residence_slope_reason", found.slope.reason), "states": found.states,
        "at": [with_reasons(at._asdict(), {"residence": "no trap was seen to end",
                                           "expected": "no state, or the median one is never left"})
               for at in found.at],
        "escape_slope": None if found.escape is None else found.escape.slope,
        "escape_slope_quartiles": None if found.escape is None else list(found.escape.quartiles),
        "margin_median": None if found.escape is None else found.escape.margin,
        **optional_reason("reason", found.reason),
    }
