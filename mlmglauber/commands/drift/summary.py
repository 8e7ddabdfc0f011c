"""The summary records of mlm-drift --summary."""

from collections.abc import Iterator, Sequence
from typing import Any

from mlmglauber.commands.shared.chain_run import ChainLaw, piece_fields
from mlmglauber.commands.shared.nullable import interval_fields, optional_reason, with_reasons
from mlmglauber.measures.drift.group_diagnostics import GroupDiagnostics
from mlmglauber.measures.drift.hitting_times import HittingScale, HittingTimes
from mlmglauber.measures.drift.series import DriftSeries
from mlmglauber.measures.drift.summary import GroupDrift, TemperatureDrift, of_group, of_temperature
from mlmglauber.measures.statistics.chain_groups import grouped, independent
from mlmglauber.measures.statistics.scaling import n_log_n
from mlmglauber.stream.records import Record


def summarise(series: Sequence[DriftSeries], thresholds: Sequence[float],
              target: float | None = None) -> Iterator[Record]:
    """A summary for each chain; then for each law, temperature and length; then for each law and temperature.

    target: the standard error of --target-se. Of a schedule, each piece is a chain and a temperature of its own. Groups
    count the first of two coupled chains: once the two have met they are the same chain.
    """
    for chain in series:
        yield chain_summary(chain, thresholds)
    single = independent(series)
    sizes = {key: len(members) for key, members in grouped(series, _group)}
    for key, members in grouped(single, _group):
        left_out = sizes[key] - len(members)
        yield group_summary(members[0], of_group(members, thresholds), left_out, target)
    for _, members in grouped(single, lambda chain: (chain.law, chain.piece, chain.tau)):
        yield temperature_summary(members[0], of_temperature(members, thresholds))


def _group(chain: DriftSeries) -> tuple[Any, ...]:
    return chain.law, chain.piece, chain.tau, chain.n


def _law_fields(chain: DriftSeries) -> Record:
    fields = chain.law.fields() if isinstance(chain.law, ChainLaw) else {}
    return fields if chain.piece is None else fields | piece_fields(chain.piece, chain.tau)


def chain_summary(chain: DriftSeries, thresholds: Sequence[float]) -> Record:
    """The summary record of one chain: final and plateau drift, hitting times, and whether it is frozen."""
    unit = n_log_n(chain.n) if chain.n else None
    hitting = []
    for threshold in thresholds:
        passage = chain.passage(threshold)
        time = passage.at_most if passage else None
        hitting.append({"threshold": threshold, "time": time, "at_least": passage.at_least if passage else None,
                        "n_log_n": time / unit if time is not None and unit else None, "censored": time is None})
    record: Record = with_reasons({
        "type": "summary", "of": "state", "over": "chain", "run": chain.run, "id": chain.text, "chain": chain.chain,
        "tau": chain.tau, "n": chain.n, **_law_fields(chain), "count": len(chain.drifts),
        "undefined": chain.undefined, "truncated": chain.truncated, "first_step": chain.steps[0],
        "last_step": chain.steps[-1], "watched": chain.watched, "final": chain.final(), "plateau": chain.plateau(),
        "quartiles": chain.quartiles(), "frozen": chain.frozen(), "hitting": hitting,
    }, {"final": "the last drift is undefined", "plateau": "no drift of the second half is defined",
        "frozen": "the second half was not seen twice"})
    if chain.coupled is not None:
        record["coupled"] = chain.coupled
    if chain.plls:
        record |= with_reasons({"pll_start": chain.pll_start(), "pll_plateau": chain.pll_plateau()},
                               {"pll_start": "the first record has no pll",
                                "pll_plateau": "no pll in the second half"})
    return record


def group_summary(first: DriftSeries, group: GroupDrift, coupled_left_out: int, target: float | None) -> Record:
    """The summary record of the chains of a law, temperature and length; first: one of them."""
    record: Record = {
        "type": "summary", "of": "state", "over": "group", "tau": first.tau, "n": first.n, **_law_fields(first),
        "chains": group.chains, "texts": group.texts, "count": group.states,
        **interval_fields("final", group.final), **interval_fields("plateau", group.plateau),
        "plateau_sd": group.plateau_sd, "frozen_chains": group.frozen,
        "hitting": [_hitting(times) for times in group.hitting],
        "diagnostics": _diagnostics(group.diagnostics),
    }
    if target is not None:
        steps, why = group.diagnostics.steps_for(target)
        record["diagnostics"] |= {"steps_needed": steps, **optional_reason("steps_needed_reason", why)}
    if coupled_left_out:
        record["coupled_left_out"] = coupled_left_out
    if group.pll is not None:
        for name, interval in group.pll._asdict().items():
            record |= interval_fields(f"pll_{name}", interval)
    return record


def temperature_summary(first: DriftSeries, drift: TemperatureDrift) -> Record:
    """The summary record of all chains of a law and temperature; first: one of them."""
    return {"type": "summary", "of": "state", "over": "tau", "tau": first.tau, **_law_fields(first),
            "chains": drift.chains, "lengths": list(drift.lengths), "hitting": [_scale(one) for one in drift.hitting]}


def _hitting(times: HittingTimes) -> Record:
    median, c = times.median, times.c
    return {"threshold": times.threshold, "hits": times.hits, "censored": times.censored, "median": median.value,
            "median_low": median.low, "median_high": median.high, "median_at_least": times.median_at_least,
            "median_n_log_n": times.median_n_log_n, "restricted_mean": times.restricted_mean,
            "restricted_mean_at_least": times.restricted_mean_at_least, "horizon": times.horizon,
            "resolution": times.resolution, "c": c.value, "c_low": c.low, "c_high": c.high,
            "c_at_least": times.c_at_least, "c_reason": c.reason, **optional_reason("median_reason", median.reason)}


def _scale(scale: HittingScale) -> Record:
    c, growth = scale.c, scale.growth
    return {"threshold": scale.threshold, "c": c.value, "c_low": c.low, "c_high": c.high,
            "c_at_least": scale.c_at_least, "c_reason": c.reason, "growth": growth.rate, "growth_low": growth.low,
            "growth_high": growth.high, "growth_p": growth.p, "growth_reason": growth.reason}


def _diagnostics(group: GroupDiagnostics) -> Record:
    record: Record = {"of": "second half of 1 - cosine to the first state of the group's first chain",
                      "resampled": group.resampled, "spacing": group.spacing, "until": group.until,
                      "left_out": group.left_out, **optional_reason("cut", group.cut)}
    if group.diagnostics is None:
        return record | {"chains": group.chains, "draws": group.draws, "reason": "undefined drifts"}
    diagnostics = group.diagnostics._asdict()
    if diagnostics["nested_reason"] is None:
        del diagnostics["nested_reason"]
    return record | diagnostics
