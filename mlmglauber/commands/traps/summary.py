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
    margins = trap_margins(group)
    if margins is None:
        names = ("perfect", "margin_median", "expected_median", "ratio", "ratio_low", "ratio_high")
        return dict.fromkeys(names) | {"reason": "no model" if group.residences else "no trap"}
    margin, expected = (value if isfinite(value) else None for value in (margins.margin, margins.expected))
    return {
        "perfect": margins.perfect, "margin_median": margin, "expected_median": expected,
        "ratio": margins.ratio.value, "ratio_low": margins.ratio.low, "ratio_high": margins.ratio.high,
        "ratio_steps": margins.steps, "ratio_exits": margins.exits,
        **optional_reason("ratio_reason", margins.ratio.reason),
        **optional_reason("margin_reason", None if margin is not None else
                          "a token of the median trap is never drawn"),
        **optional_reason("expected_reason", None if expected is not None else "the median trap is never left"),
    }


def slowness_fields(groups: Mapping[float, TrapGroup], min_steps: int, escapes: StateEscapes | None) -> Record:
    """How the stays of one length grow with 1 / tau; groups: by temperature; escapes: None without a model."""
    growth = slowness(groups, min_steps, escapes)
    return {
        "taus": list(groups), "texts": growth.texts,
        "residence_slope": growth.slope.value, "residence_slope_low": growth.slope.low,
        "residence_slope_high": growth.slope.high, "residence_intercept": growth.intercept,
        **optional_reason("residence_slope_reason", growth.slope.reason), "states": growth.states,
        "at": [with_reasons(at._asdict(), {"residence": "no trap was seen to end",
                                           "expected": "no state, or the median one is never left"})
               for at in growth.at],
        "escape_slope": None if growth.escape is None else growth.escape.slope,
        "escape_slope_quartiles": None if growth.escape is None else list(growth.escape.quartiles),
        "margin_median": None if growth.escape is None else growth.escape.margin,
        **optional_reason("reason", growth.reason),
    }
