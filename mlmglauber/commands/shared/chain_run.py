"""What a run record says of the chains whose states follow it: for every command that looks at states.

A chain is made by a law: a model, the tokens that may be drawn (--allow), the sites that do not move (--freeze), a
scan and a temperature. Whoever measures such a chain, or puts chains together, asks here which law that was.
"""

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from mlmglauber.stream.errors import RecordError, UsageError
from mlmglauber.stream.json_values import as_json
from mlmglauber.stream.records import Record

if TYPE_CHECKING:
    from mlmglauber.commands.shared.filter import Filter
    from mlmglauber.models.conditionals import TextModel

SCANS = ("random", "permutation", "systematic")
INITS = ("text", "mask", "random")


class Law(NamedTuple):
    """What must be the same for chains to be put together in one row, beside their temperature and length.

    model, hash, revision: of the model; precision: that of the conditionals which define the chains, whatever number
    format they were first computed in; init: what the chains start from; allow: the words that may be drawn,
    sorted; freeze: the sites that do not move. All None, or empty, where no run record came before the states.
    """

    model: str | None = None
    hash: str | None = None
    revision: str | None = None
    precision: str | None = None
    scan: str | None = None
    init: str | None = None
    allow: tuple[str, ...] | None = None
    freeze: tuple[int, ...] = ()

    def fields(self) -> Record:
        """The fields of a summary that tell of it; `allow` and `freeze` only where there are any."""
        if self == UNKNOWN:
            return {"model": None, "model_reason": "no run record"}
        told: Record = {"model": self.model}
        told |= {name: value for name, value in (("hash", self.hash), ("revision", self.revision),
                                                 ("precision", self.precision)) if value is not None}
        return told | {"scan": self.scan, "init": self.init, **self.restrictions()}

    def restrictions(self) -> Record:
        """`allow` and `freeze`, where there are any."""
        return {**({} if self.allow is None else {"allow": ",".join(self.allow)}),
                **({"freeze": list(self.freeze)} if self.freeze else {})}


UNKNOWN = Law()
LAW_FIELDS = Law._fields
"""The names that the fields of a law have in summaries."""


class ChainRun(NamedTuple):
    """A run of chains: its law, its temperature, and whether its states show every change (None: not known).

    known: whether its run record came before its states. Where it did not, the scan is taken for the random one.
    """

    run: str | None
    law: Law
    tau: float | None
    shows_all: bool | None
    known: bool

    @property
    def scan(self) -> str:
        return self.law.scan or "random"

    def free_sites(self, n: int) -> tuple[int, ...]:
        """The sites of a state of n tokens that the chain draws at."""
        return tuple(site for site in range(n) if site not in self.law.freeze)

    def tau_of(self, record: Record) -> float | None:
        """The temperature of a state: its own, else that of its run; None where neither tells it."""
        tau = record.get("tau", self.tau)
        if tau is not None and (type(tau) not in (int, float) or not isfinite(tau) or tau < 0):
            raise RecordError(f'"tau" is {as_json(tau)}, no temperature; these are not state records of mlm-sample')
        return None if tau is None else float(tau)


NO_RUN = ChainRun(None, UNKNOWN, None, None, known=False)


class Runs:
    """The run records of an input, as they come."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self._read: dict[str, ChainRun] = {}

    def take(self, record: Record) -> None:
        """A record of type run; those that made no chains are not kept."""
        name = record.get("run")
        if isinstance(name, str) and record.get("command") in ("mlm-sample", "mlm-couple"):
            self.records[name] = record
            self._read.pop(name, None)

    def of(self, state: Record) -> ChainRun:
        """The run of a state; RecordError where its run record has options that no chain has."""
        name = state.get("run")
        if not isinstance(name, str) or name not in self.records:
            return NO_RUN if name is None else NO_RUN._replace(run=str(name))
        if name not in self._read:
            self._read[name] = _chain_run(self.records[name])
        return self._read[name]


def _chain_run(record: Record) -> ChainRun:
    options = record.get("options")
    options = options if isinstance(options, dict) else {}
    allow, freeze, tau = options.get("allow"), options.get("freeze") or [], record.get("tau")
    scan, init = options.get("scan", "random"), options.get("init", "text")
    start = options.get("start")  # of mlm-couple
    precision = record.get("precision", record.get("dtype"))
    model, digest, revision, _ = names = [*(record.get(name) for name in ("model", "hash", "revision")), precision]
    if not (all(name is None or isinstance(name, str) for name in (*names, allow, start)) and scan in SCANS
            and init in INITS and type(freeze) is list and all(type(site) is int and site >= 0 for site in freeze)
            and (tau is None or type(tau) in (int, float))):
        raise RecordError(f"the run record of {record['run']!r} has a model, tau, allow, freeze, scan or init that no "
                          "run of mlm-sample has; give its records as it wrote them")
    words = None if allow is None else tuple(sorted(map(str.strip, allow.split(","))))
    law = Law(model, digest, revision, precision, scan, start or init, words, tuple(sorted(set(freeze))))
    shows_all = None
    if record["command"] == "mlm-sample":
        shows_all = bool(options.get("on_change")) or options.get("every") == 1
    return ChainRun(record["run"], law, tau, shows_all, known=True)


class ChainModels:
    """The one model of a command as the chains of each run have it: the very one, restricted to what they may draw."""

    def __init__(self, filter: "Filter", model: "TextModel", otherwise: str = "give their texts without their ids"
                 ) -> None:
        """otherwise: what else to do about states of another model."""
        self.filter, self.model, self.otherwise = filter, model, otherwise
        self._described = model.describe()
        self._models: dict[Law, TextModel] = {}

    def of(self, run: ChainRun) -> "TextModel":
        """UsageError where the chains are of another model: what it says is of another law."""
        if not run.known:
            self.filter.once("no run record", lambda: self.filter.words.say(
                f"no run record came before states of run {run.run}: they are taken for states of "
                f"{self._described['model']}, with all its tokens, no site frozen, random scan; give the records as "
                "mlm-sample wrote them"))
        if run.law not in self._models:
            self._models[run.law] = self._restricted(run)
        return self._models[run.law]

    def _restricted(self, run: ChainRun) -> "TextModel":
        self.check(run)
        if run.law.allow is None:
            return self.model
        from mlmglauber.models.restricted import RestrictedModel, tokens_of

        tokens = tokens_of(self.model, ",".join(run.law.allow), f"--allow of run {run.run}")
        return RestrictedModel(self.model, tokens)

    def check(self, run: ChainRun) -> None:
        """UsageError for chains of another model, a warning for those of another precision."""
        ours, theirs = self._described, run.law
        for key, value in (("hash", theirs.hash), ("revision", theirs.revision), ("model", theirs.model)):
            if ours.get(key) is not None and value is not None:
                if ours[key] != value:
                    raise UsageError(f"run {run.run} is of the model {theirs.model} ({key} {value}), not of "
                                     f"{ours['model']} ({ours[key]}); name its model with -m, or {self.otherwise}")
                break
        here = ours.get("precision", ours["dtype"])
        if theirs.precision not in (None, here):
            self.filter.once(("number format", run.run), lambda: self.filter.words.say(
                f"the chains of run {run.run} are defined in {theirs.precision}, this is computed in {here}; give the "
                "same --dtype and --exact for the law of the chains"))
