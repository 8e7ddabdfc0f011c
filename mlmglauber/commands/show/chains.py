"""Keeps the last state of each chain, and tells how each new state of it differs."""

from collections import deque
from typing import Any, NamedTuple

from mlmglauber.commands.show.comparison import WordChange, Words, changed_sites, changes_between, readable, words_of
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.json_values import json_kind
from mlmglauber.stream.records import Record, chain_key, names_of, tau_and_n


class ShownState(NamedTuple):
    """A state of a chain, ready to be drawn.

    chain: the name of the chain. tau: the temperature of its first state, "" where it is not known. changes: what
    differs from the state before, or from the first state. logp: the log-probability of the token that was drawn, in
    nats. notes: drift, basin and other fields of the record, in words.
    """

    chain: str
    tau: str
    n: int
    step: int
    words: Words
    changes: list[WordChange]
    logp: float | None
    notes: list[str]


class ShownTrap(NamedTuple):
    """A trap of a chain, or a fixed point or cycle of a text, in words."""

    chain: str
    tau: str
    what: str
    text: str


class ShownChain:
    """What is remembered of a chain: its last state, with --diff its first one, and the traps that lie ahead."""

    def __init__(self, name: str, tau: str) -> None:
        self.name, self.tau = name, tau
        self.words: Words | None = None
        self.start: Words | None = None
        self.step = -1
        self.traps: deque[tuple[int, int]] = deque()

    def in_trap(self, step: int) -> bool:
        """Whether a step lies in a trap whose record came before; steps only grow."""
        while self.traps and self.traps[0][1] < step:
            self.traps.popleft()
        return bool(self.traps) and self.traps[0][0] <= step


class ShownChains:
    """The chains of an input, each compared with its own states only; memory does not grow with their length.

    from_start: compare each state with the first one of its chain, not with the one before.
    """

    def __init__(self, from_start: bool = False) -> None:
        self.from_start = from_start
        self._chains: dict[Any, ShownChain] = {}
        self._names: set[tuple[str, str]] = set()

    def state(self, record: Record) -> ShownState:
        """What a state record shows; RecordError for fields that are not those of a state."""
        tau, _ = tau_and_n(record)
        shown_tau = "" if tau is None else f"{tau:g}"
        chain = self._chain(record, shown_tau)
        step = record.get("step", chain.step + 1)
        if type(step) is not int or step < 0:
            raise RecordError(f'"step" is {json_kind(step)}, not a number of steps; give records of mlm-sample')
        words = _words(record)
        notes = _notes(record)
        before = chain.words if step > chain.step else None  # steps that go back: the chain begins again
        if before is None:
            chain.start = words if self.from_start else None
        logp = None
        changes: list[WordChange] = []
        if before is not None:
            site, logp = _drawn(record, before, words)
            changes = changes_between(chain.start or before, words)
            if logp is not None:
                changes = [change._replace(logp=logp) if change.site == site else change for change in changes]
            if not changes and not self.from_start and (sites := changed_sites(before, words)):
                notes.append(f"token changed at site {', '.join(map(str, sites))}, text did not")
        if chain.traps and chain.in_trap(step):
            notes.append("trap")
        chain.words, chain.step = words, step
        if shown_tau != chain.tau:
            notes.append(f"now tau {shown_tau}")
        return ShownState(chain.name, chain.tau, len(words.parts) if words.ids is None else len(words.ids), step, words,
                          changes, logp, notes)

    def trap(self, record: Record) -> ShownTrap:
        """What a trap record shows. States of its chain that follow are marked if they lie within it."""
        tau, _ = tau_and_n(record)
        shown_tau = "" if tau is None else f"{tau:g}"
        text = _words(record).text()
        if "found" in record:
            what = str(record["found"]).replace("_", " ")
            return ShownTrap("", shown_tau, readable(f"{what} of {record.get('basin_count', '?')} starts"), text)
        chain = self._chain(record, shown_tau)
        first, last = record.get("first"), record.get("last")
        if type(first) is not int or type(last) is not int:
            raise RecordError('"first" and "last" are not the steps of a trap; give records of mlm-traps')
        if last > chain.step:
            chain.traps.append((first, last))
        what = f"steps {first} to {last}" + ("" if not record.get("censored") else " or later")
        return ShownTrap(chain.name, shown_tau, what, text)

    def _chain(self, record: Record, tau: str) -> ShownChain:
        key = chain_key(record)
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = ShownChain(self._new_name(key, tau), tau)
        return chain

    def _new_name(self, key: tuple[Any, ...], tau: str) -> str:
        """id/chain; with the run before it if another chain of this temperature has the same name."""
        run, own, number = key
        name = "/".join(readable(str(part)) for part in (own, number) if part is not None) or "unnamed"
        if (name, tau) in self._names and run is not None:
            name = f"{readable(str(run))}/{name}"
        self._names.add((name, tau))
        return name


def run_line(record: Record) -> str:
    """One line about a run record."""
    run, command, model = names_of(record, "run", "command", "model")
    name = next((value for value in (model, record.get("embedder")) if value is not None), None)
    fields = {"run": run, "command": command, "model": name, "tau": _number(record, "tau"), "seed": record.get("seed")}
    return "  ".join(f"{key} {value:g}" if type(value) is float else f"{key} {readable(str(value))}"
                     for key, value in fields.items() if value is not None)


def _words(record: Record) -> Words:
    """The words of a record's text; its token ids where it has no text."""
    ids, text = record.get("ids"), record.get("text")
    if ids is not None and type(ids) is not list:
        raise RecordError(f'"ids" is {json_kind(ids)}, not a list of integers; correct it')
    if text is None and ids:
        return words_of(" ".join(map(str, ids)), ids)
    if type(text) is not str:
        raise RecordError('no "text" and no "ids"; add one of them' if text is None else
                          f'"text" is {json_kind(text)}, not a string; write it between quotes')
    return words_of(text, ids)


def _drawn(record: Record, before: Words, words: Words) -> tuple[int | None, float | None]:
    """The site of the update that made a state, and the log-probability of its new token, where the record has them."""
    logp = record.get("logp_new")
    if logp is None or not record.get("changed", True):
        return None, None
    site = record.get("site")
    if type(logp) not in (float, int) or type(site) is not int:
        raise RecordError('"logp_new" or "site" is not a number; give state records of mlm-sample')
    return site, float(logp)


def _notes(record: Record) -> list[str]:
    """Fields of a state that filters add, in words."""
    notes = []
    if (drift := _number(record, "drift")) is not None:
        notes.append(f"drift {drift:.2f}")
    if "basin" in record:
        basin, p = record["basin"], _number(record, "basin_p")
        if type(basin) not in (str, type(None)):
            raise RecordError(f'"basin" is {json_kind(basin)}, not a name; give records of mlm-basins')
        notes.append("no basin" if basin is None else
                     f"basin {readable(basin)}" + ("" if p is None else f" {p:.2f}"))
    if (pll := _number(record, "pll")) is not None:
        notes.append(f"pll {pll:.1f}")
    if (masked := _number(record, "masked")) is not None:
        notes.append(f"masked {masked:g}")
    return notes


def _number(record: Record, field: str) -> float | None:
    value = record.get(field)
    if value is None:
        return None
    if type(value) not in (int, float):
        raise RecordError(f'"{field}" is {json_kind(value)}, not a number; correct it')
    return float(value)
