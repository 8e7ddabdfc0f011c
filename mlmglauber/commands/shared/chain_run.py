"""Reads from a run record how the chains were made whose states follow it, for every command that reads states.

The law of a chain is its model, the tokens that may be drawn (--allow), the sites that stay fixed (--freeze), its scan
and its temperature, or the schedule of several (--schedule). Whatever is measured on a chain is measured under that
law, and only chains of one law are pooled.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from mlmglauber.commands.shared.site_allow import site_allow
from mlmglauber.commands.shared.truncation_options import recorded_truncation
from mlmglauber.dynamics.temperatures import Temperatures
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import as_json, to_line
from mlmglauber.stream.records import Record

if TYPE_CHECKING:
    from mlmglauber.models.truncation import Truncation

SCANS = ("random", "permutation", "systematic")
"""The values of --scan of mlm-sample."""
INITS = ("text", "mask", "random")
"""The values of --start of mlm-sample."""


class ChainLaw(NamedTuple):
    """What chains must share, besides temperature and length, to be pooled in one row.

    model, hash, revision: of the model. precision: number format of the conditionals that define the chains, which
    --exact makes better than that of the model. init: what the chains start from. allow: the words that may be drawn,
    sorted. ban: those that may not, sorted. freeze: the sites that stay fixed. schedule: the temperatures by steps.
    truncation: the rules that cut off tokens. All None, or empty, where no run record came before the states.
    """

    model: str | None = None
    hash: str | None = None
    revision: str | None = None
    precision: str | None = None
    scan: str | None = None
    init: str | None = None
    allow: tuple[str, ...] | None = None
    ban: tuple[str, ...] = ()
    freeze: tuple[int, ...] = ()
    schedule: str | None = None
    truncation: "Truncation | None" = None

    def fields(self) -> Record:
        """Its fields in a summary record; `allow`, `freeze` and `schedule` only if the run had them."""
        if self == UNKNOWN:
            return {"model": None, "model_reason": "no run record"}
        fields: Record = {"model": self.model}
        fields |= {name: value for name, value in (("hash", self.hash), ("revision", self.revision),
                                                 ("precision", self.precision)) if value is not None}
        schedule = {} if self.schedule is None else {"schedule": self.schedule}
        return fields | {"scan": self.scan, "init": self.init, **self.restrictions(), **schedule}

    @property
    def temperatures(self) -> Temperatures | None:
        """The schedule; None for chains of one temperature."""
        return None if self.schedule is None else _schedule(self.schedule)

    def restrictions(self) -> Record:
        """The fields of the tokens that may be drawn, and `freeze`, if the run had them."""
        return self.vocabulary() | ({"freeze": list(self.freeze)} if self.freeze else {})

    def vocabulary(self) -> Record:
        """The fields `allow`, `ban`, `top_k`, `top_p` and `min_p`, if the run had them."""
        rules = {} if self.truncation is None else self.truncation._asdict()
        return {**({} if self.allow is None else {"allow": listed(self.allow)}),
                **({"ban": listed(self.ban)} if self.ban else {}),
                **{name: value for name, value in rules.items() if value is not None}}


LISTED = 20
"""Maximum number of words that a summary lists."""


def listed(words: Sequence[str]) -> str:
    """Words with commas between; of a long list the first ones, their number, and a digest of all.

    >>> listed(["a", "b"]), listed([f"w{k}" for k in range(10, 99)])[-38:]
    ('a,b', ',w28,w29 and 69 more (digest c5faa4c6)')
    """
    if len(words) <= LISTED:
        return ",".join(words)
    digest = hashlib.blake2b(to_line(list(words)), digest_size=4).hexdigest()
    return f"{','.join(words[:LISTED])} and {len(words) - LISTED} more (digest {digest})"


def piece_fields(piece: int, tau: float | None) -> Record:
    """The fields of a piece of a schedule in a record; tau: None for a ramp."""
    return {"piece": piece} | ({"tau_reason": "it changes along the ramp"} if tau is None else {})


UNKNOWN = ChainLaw()
LAW_FIELDS = ChainLaw._fields
"""Names of the fields of a law in summary records."""


class ChainRun(NamedTuple):
    """A run of chains: its law, its temperature, and whether its states show every change (None: not known).

    known: whether its run record came before its states. If it did not, the scan is assumed to be random. allow_at: the
    words that this chain may draw at some sites, see site_allow; a text has its own, so it is not part of the law.
    """

    run: str | None
    law: ChainLaw
    tau: float | None
    shows_all: bool | None
    known: bool
    allow_at: str | None = None

    @property
    def drawn(self) -> "tuple[ChainLaw, str | None]":
        """What the conditionals of the chain depend on besides the model: the words and sites that may be drawn."""
        law = self.law
        return ChainLaw(allow=law.allow, ban=law.ban, freeze=law.freeze, truncation=law.truncation), self.allow_at

    @property
    def scan(self) -> str:
        return self.law.scan or "random"

    def free_sites(self, n: int) -> tuple[int, ...]:
        """The sites of a state of n tokens at which the chain draws tokens."""
        return tuple(site for site in range(n) if site not in self.law.freeze)

    def tau_of(self, record: Record) -> float | None:
        """The temperature of a state: its own, else that of its run, else None. RecordError for an impossible one."""
        tau = record.get("tau", self.tau)
        if tau is not None and (type(tau) not in (int, float) or not isfinite(tau) or tau < 0):
            raise RecordError(f'"tau" is {as_json(tau)}, not a temperature; give states as mlm-sample wrote them')
        return None if tau is None else float(tau)


def check_same_tau(record: Record, tau: float | None) -> None:
    """RecordError for a later state of a chain at another temperature than the first one, without a schedule."""
    now = record.get("tau")
    if now is not None and tau is not None and now != tau:
        raise RecordError(f"the chain goes from tau {as_json(tau)} to {as_json(now)}, but no run record with a "
                          "schedule came before it; give the records as mlm-sample wrote them")


NO_RUN = ChainRun(None, UNKNOWN, None, None, known=False)


class Runs:
    """The run records read so far, and the runs that they describe."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self._parsed: dict[str, ChainRun] = {}

    def take(self, record: Record) -> None:
        """Keep a run record, if its command makes chains."""
        name = record.get("run")
        if isinstance(name, str) and record.get("command") in ("mlm-sample", "mlm-couple"):
            self.records[name] = record
            self._parsed.pop(name, None)

    def of(self, state: Record) -> ChainRun:
        """The run of a state; RecordError if its run record has options that mlm-sample does not write.

        RecordError also for a state whose `allow` is not that of an input.
        """
        name = state.get("run")
        if not isinstance(name, str) or name not in self.records:
            run = NO_RUN if name is None else NO_RUN._replace(run=str(name))
        else:
            if name not in self._parsed:
                self._parsed[name] = _chain_run(self.records[name])
            run = self._parsed[name]
        return run if "allow" not in state else run._replace(allow_at=site_allow(state))


def _chain_run(record: Record) -> ChainRun:
    options = record.get("options")
    options = options if isinstance(options, dict) else {}
    allow, freeze, tau = options.get("allow"), options.get("freeze") or [], record.get("tau")
    scan, init = options.get("scan", "random"), options.get("init", "text")
    start = options.get("start")  # of mlm-couple
    schedule = options.get("schedule")
    precision = record.get("precision", record.get("dtype"))
    model, digest, revision, _ = names = [*(record.get(name) for name in ("model", "hash", "revision")), precision]
    if not (all(name is None or isinstance(name, str) for name in (*names, allow, start, schedule)) and scan in SCANS
            and init in INITS and type(freeze) is list and all(type(site) is int and site >= 0 for site in freeze)
            and (tau is None or type(tau) in (int, float)) and _is_schedule(schedule)
            and all(_are_words(options.get(name)) for name in ("allow_file", "ban_file"))):
        raise _unknown(record)
    words: list[str] | None = None if allow is None else list(map(str.strip, allow.split(",")))
    if options.get("allow_file") is not None:
        words = [*(words or []), *options["allow_file"]]
    law = ChainLaw(model, digest, revision, precision, scan, start or init,
                   None if words is None else tuple(sorted(set(words))),
                   tuple(sorted(set(options.get("ban_file") or []))), tuple(sorted(set(freeze))), schedule,
                   _truncation(record, options))
    shows_all = None
    if record["command"] == "mlm-sample":
        shows_all = bool(options.get("on_change")) or options.get("every") == 1
    return ChainRun(record["run"], law, tau, shows_all, known=True)


def _unknown(record: Record) -> RecordError:
    return RecordError(f"the run record of {record['run']!r} has a model, tau, schedule, allow, top_k, freeze, scan or "
                       "init that mlm-sample does not write; give the records as mlm-sample wrote them")


def _truncation(record: Record, options: dict[str, Any]) -> "Truncation | None":
    try:
        return recorded_truncation(options)
    except ValueError as error:
        raise _unknown(record) from error


def _are_words(value: Any) -> bool:
    return value is None or (type(value) is list and all(isinstance(word, str) for word in value))


@lru_cache
def _schedule(text: str) -> Temperatures:
    return Temperatures.parse(text)


def _is_schedule(text: str | None) -> bool:
    try:
        _schedule(text or "1")
    except ValueError:
        return False
    return True
