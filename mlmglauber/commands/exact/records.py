"""The records of mlm-exact: the exact solution of a restricted chain, and its comparison with sampled states."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mlmglauber.commands.exact.options import ExactOptions
from mlmglauber.commands.shared.chain_models import ChainModels
from mlmglauber.commands.shared.chain_run import ChainRun
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import Input, Inputs
from mlmglauber.commands.shared.nullable import nullable, with_reasons
from mlmglauber.commands.shared.truncation_options import truncation_of
from mlmglauber.dynamics.glauber import NotFiniteError
from mlmglauber.measures.exact.agreement import agreement, spacing, thinned
from mlmglauber.measures.exact.restriction import Restriction
from mlmglauber.measures.exact.solve import Exact, solve_all
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.restricted import allowed_at, truncated_model
from mlmglauber.models.truncation import Truncation
from mlmglauber.stream.errors import RecordError, UsageError
from mlmglauber.stream.records import Record


def records(inputs: Inputs, options: ExactOptions, text: Input, space: Restriction,
            sampled: "Sampled | None") -> Iterator[Record]:
    """One record for each temperature; the conditionals are computed once for all."""
    assert inputs.model is not None
    model = truncated_model(inputs.model, truncation_of(options))
    try:
        with inputs.io.reporter.bar("conditionals", space.rows, f"text {text.name}") as progress:
            base = space.log_probs(model, model.rows, progress)
    except NotFiniteError as error:
        raise RecordError(f"the model's conditional at site {error.row} is not a distribution over the chosen "
                          "tokens; choose other tokens") from error
    start = space.place(text.ids)
    for tau, exact in zip(options.tau, solve_all(space.shape, base, options.tau, options.eps, start,
                                                      truncation=model.truncation), strict=True):
        record: Record = {"type": "exact", "run": inputs.run, "id": text.name, "tau": tau, "n": len(text.ids),
                          "text": model.decode(text.ids), "sites": space.sites,
                          "choices": [[model.decode([int(token)]) for token in tokens] for tokens in space.choices],
                          "states": space.states, "eps": options.eps}
        record |= _law(exact, model, space, options.likeliest) | _mixing(exact, start)
        record |= _influence(exact, options.influences) | _incompatibility(exact, tau)
        record |= _other_laws(exact)
        if sampled is not None:
            assert inputs.chains is not None
            record["compare"] = sampled.against(exact, space, text.name, tau, model.truncation, inputs.chains)
        yield text.answer(record)


def _law(exact: Exact, model: TextModel, space: Restriction, count: int) -> Record:
    if exact.law is None:
        return with_reasons({"likeliest": None, "basin": None}, exact.reasons)
    states = []
    for state in np.argsort(-exact.law, kind="stable")[:count].tolist():
        ids, escape = space.ids(state), float(exact.escape[state])
        states.append({"text": model.decode(ids), "ids": ids, "probability": float(exact.law[state]), "escape": escape,
                       **nullable("residence", 1 / escape if escape > 0 else None, "the state is never left")})
    basin = exact.basin
    assert basin is not None
    fields = {"states": basin.states, "mass": basin.mass, "conductance": basin.conductance}
    error = {} if exact.error is None else {"law_error": exact.error}
    return {"likeliest": states, **error, "basin": with_reasons(fields, {"conductance": basin.reason})}


def _mixing(exact: Exact, start: int | None) -> Record:
    mixing, second = exact.mixing, exact.second
    fields = {"second_modulus": second.modulus, "second_complex": second.is_complex, "tmix": mixing.worst,
            "tmix_exact": mixing.exact, "tmix_text": mixing.from_start}
    if not mixing.exact:
        bounds = {"tmix_low": mixing.low, "tmix_high": mixing.high}
        fields |= {name: bound for name, bound in bounds.items() if bound is not None}
    reason = mixing.reason or "over the longest time that was followed"
    return with_reasons(fields, {"tmix": reason, "second_modulus": second.reason,
                        "tmix_text": reason if start is not None else "the text is none of the states"})


def _influence(exact: Exact, matrix: bool) -> Record:
    c = exact.influences
    fields = {"alpha": exact.alpha, "row_sums": c.sum(axis=1).tolist(), "column_sums": c.sum(axis=0).tolist(),
            "spectral_radius": exact.spectral_radius, "bound": exact.bound}
    return with_reasons(fields | ({"influences": c.tolist()} if matrix else {}), exact.reasons)


def _incompatibility(exact: Exact, tau: float) -> Record:
    """The fields on incompatibility; delta is that of tau = 1 divided by tau."""
    deltas = exact.rectangles
    mean, largest = (None if value is None or tau == 0 else value / tau for value in (deltas.mean, deltas.largest))
    fields = {"rectangles": deltas.number, "mean_abs_delta": mean, "max_abs_delta": largest,
            "entropy_production": exact.entropy_production, "reversible": exact.reversible}
    reason = deltas.reason or "delta / tau has no limit at tau = 0"
    return with_reasons(fields, {"mean_abs_delta": reason, "max_abs_delta": reason, **exact.reasons})


def _other_laws(exact: Exact) -> Record:
    """The fields on the stationary distributions of other scans, and on that of the pseudo-log-likelihoods."""
    scans, why, pll = exact.scans, exact.scans.reasons, exact.pll
    fields = {"scan_tv": scans.systematic, "permutation_tv": scans.permutation, "sweeps_tv": scans.between,
              "pll_tv": pll.tv, "pll_kl": pll.kl}
    return with_reasons(fields, {"scan_tv": why.get("systematic"), "permutation_tv": why.get("permutation"),
                                 "sweeps_tv": why.get("between"), "pll_tv": pll.reason, "pll_kl": pll.reason})


class Sampled:
    """The states of a file, by text and temperature; keeps 4 bytes a token and about 200 bytes a state."""

    def __init__(self, io: Filter, path: str) -> None:
        self.path = path
        self._chains: dict[tuple[str, float], dict[tuple[ChainRun, int], list[tuple[int, Any]]]] = {}
        other = Filter(io.reporter, (path,), io.strict, io.output)
        for record in other.records():
            if record.get("type") == "state" and not io.leaves_out(record):
                with other.guard(other.place):
                    self._keep(record, other.runs.of(record))
        other.conclude()

    def _keep(self, record: Record, run: ChainRun) -> None:
        try:
            chains = self._chains.setdefault((str(record["id"]), float(record["tau"])), {})
            states = chains.setdefault((run, int(record["chain"])), [])
            states.append((int(record["step"]), np.array(record["ids"], dtype=np.int32)))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RecordError(f"not a state of mlm-sample ({error}); give the output of mlm-sample to "
                              "--compare") from error
        if run.scan != "random":
            raise UsageError(f"--compare {self.path}: the run does not have the random scan, so its law is another; "
                             "sample with --scan random")

    def against(self, exact: Exact, space: Restriction, name: str, tau: float, truncation: Truncation | None,
                models: ChainModels) -> Record:
        """Compare the chains of a text at a temperature with the exact law; UsageError for chains of another model."""
        chains = self._chains.get((name, tau), {})
        none: Record = {"chains": len(chains), "tv": None, "p_value": None}
        modulus = exact.second.modulus
        if not chains:
            return none | {"reason": f"{self.path} has no state of this text at this temperature"}
        others = [_other_law(run, space, truncation, models) for run, _ in chains]
        if exact.law is None or modulus is None or (apart := spacing(modulus)) is None:
            return none | {"reason": "the law or its second eigenvalue is not known"}
        counts, outside = np.zeros(space.states, dtype=np.int64), 0
        for (run, _), states in chains.items():
            states.sort(key=lambda state: state[0])
            for k in thinned(np.array([step for step, _ in states]), apart, bool(run.shows_all)).tolist():
                place = space.place(states[k][1])
                if place is None:
                    outside += 1
                else:
                    counts[place] += 1
        none |= {"thin": apart, "outside": outside}
        if outside:
            return none | {"reason": "states outside the restriction; sample with --allow and the same --freeze"}
        if reasons := [why for why in others if why is not None]:
            return none | {"reason": reasons[0]}
        fields = agreement(counts, exact.law)._asdict()
        reason = fields.pop("reason")
        return none | fields | ({} if reason is None else {"reason": reason})


def _other_law(run: ChainRun, space: Restriction, truncation: Truncation | None, models: ChainModels) -> str | None:
    """Why a run may have another law than the restriction, though its states lie in it; None if it has the same."""
    if not run.known:
        return "no run record before the states: their model, scan, --allow and --freeze are not known"
    if run.law.schedule is not None:
        return f"run {run.run} changes its temperature; sample with --tau"
    if run.law.truncation != truncation:
        return f"run {run.run} cuts off other tokens; give both the same --top-k, --top-p and --min-p"
    model = models.of(run)
    if run.free_sites(len(space.text)) != tuple(space.sites):
        return f"run {run.run} draws at other sites than the free ones; sample with the same --freeze"
    if any(not np.array_equal(tokens, allowed_at(model, site))
           for tokens, site in zip(space.choices, space.sites, strict=True)):
        return f"run {run.run} draws other tokens than the choices; sample with --allow and the same words"
    return None
