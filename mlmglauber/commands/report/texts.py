"""The most telling texts of an experiment: few of each kind are kept."""

from bisect import insort
from itertools import count
from math import isfinite
from typing import Any, NamedTuple

from mlmglauber.pictures.panel import some
from mlmglauber.stream.records import Record, chain_key, tokens_of_pll
from mlmglauber.stream.records import shown_name as named

FOLLOWED = 2
"""Maximum number of chains of one temperature and length whose texts are kept."""
GROUPS = 50
"""Maximum number of temperatures and lengths whose chains are kept."""


class TellingText(NamedTuple):
    """A heading, and lines of (label, text)."""

    heading: str
    lines: list[tuple[str, str]]


class BestOf:
    """The items with the largest values, at most `most`, each text once."""

    def __init__(self, most: int) -> None:
        self._most, self._items = most, list[tuple[float, int, str, Record]]()
        self._order = count()

    def take(self, value: Any, text: Any, record: Record) -> None:
        """Keep a record if its value is a number among the largest; of equal texts the one with the largest value."""
        if type(value) not in (int, float) or not isfinite(value) or not self._most:
            return
        if len(self._items) >= self._most and value <= self._items[0][0]:
            return
        same = next((item for item in self._items if item[2] == text), None)
        if same is not None:
            if same[0] >= value:
                return
            self._items.remove(same)
        insort(self._items, (value, -next(self._order), text, record))
        del self._items[: -self._most]

    @property
    def records(self) -> list[Record]:
        """The kept records, the one with the largest value first."""
        return [item[3] for item in reversed(self._items)]


class ChainTexts:
    """First texts, first hits and last texts of the first few chains of each temperature and length."""

    def __init__(self, threshold: float, most: int) -> None:
        self._threshold, self._most = threshold, most
        self._chains: dict[Any, list[Record | None]] = {}
        """The first state, the first state whose drift is at the threshold or above, and the last one."""
        self._groups: dict[Any, int] = {}
        self._left_out: set[int] = set()
        """Hashes of the keys of chains that are not kept."""

    def take(self, state: Record) -> None:
        """Take a state with a text."""
        key = chain_key(state)
        if key not in self._chains:
            group = (state.get("tau"), state.get("n"))
            known = self._groups.get(group, 0)
            if known >= FOLLOWED or (not known and len(self._groups) >= GROUPS):
                self._left_out.add(hash(key))
                return
            self._groups[group] = known + 1
            self._chains[key] = [state, None, state]
        chain = self._chains[key]
        drift = state.get("drift")
        if chain[1] is None and drift is not None and drift >= self._threshold:
            chain[1] = state
        chain[2] = state

    def texts(self) -> list[TellingText]:
        """At most `most` chains, of as many temperatures and lengths as possible, by length and temperature."""
        groups: dict[Any, list[list[Record | None]]] = {}
        for states in sorted(self._chains.values(), key=lambda states: _group(states[0])):
            groups.setdefault(_group(states[0]), []).append(states)
        chosen: list[list[Record | None]] = []
        for turn in range(FOLLOWED):  # neighbouring groups begin with different chains, so that texts differ
            chosen += some([chains[(place + turn) % len(chains)] for place, chains in enumerate(groups.values())
                            if turn < len(chains)], self._most - len(chosen))
        return [TellingText(of_chain(states[0] or {}), self._lines(*states))
                for states in sorted(chosen, key=lambda states: _group(states[0]))]

    @property
    def others(self) -> int:
        """Number of chains that `texts` leaves out."""
        return max(0, len(self._left_out) + len(self._chains) - self._most)

    def _lines(self, first: Record | None, hit: Record | None, last: Record | None) -> list[tuple[str, str]]:
        assert first is not None
        assert last is not None
        lines = [(f"start, {_when(first)}", str(first["text"]))]
        if hit is not None:
            lines.append((f"first hit, {_when(hit)}", str(hit["text"])))
        elif "drift" in last:
            lines.append(("first hit", f"none: no state reached drift {self._threshold:g}"))
        if last is not first and last is not hit:
            lines.append((f"end, {_when(last)}", str(last["text"])))
        return lines


def _group(state: Record | None) -> tuple[float, float]:
    """Length and temperature of a state, 0 where it has none."""
    state = state or {}
    return state.get("n") or 0, state.get("tau") or 0


def of_chain(record: Record) -> str:
    """The chain of a record in words."""
    parts = [f"tau {record['tau']:g}"] if record.get("tau") is not None else []
    parts += [f"n {record['n']}"] if record.get("n") is not None else []
    parts += [f"id {named(record.get('id'))}"]
    return ", ".join(parts + ([f"chain {record['chain']}"] if record.get("chain") is not None else []))


def _when(state: Record) -> str:
    drift = state.get("drift")
    return f"step {state.get('step', 0)}" + (f", drift {drift:.2f}" if drift is not None else "")


def nats(value: Any, digits: int = 2) -> str:
    """A number of nats; a dash for none."""
    return "-" if value is None else f"{value:.{digits}f} nats"


def trap_text(trap: Record) -> TellingText:
    """A trap of a chain: how long, how firm, where."""
    stay = f"{trap['residence']} steps" + (" or more" if trap.get("censored") else "")
    parts = [stay, f"tau {trap['tau']:g}" if trap.get("tau") is not None else "", str(trap.get("kind") or "")]
    label = f"margin {nats(trap.get('margin'))}"
    if trap.get("expected") is not None:
        label += f", {trap['expected']:.0f} steps expected in this state alone"
    label += f", steps {trap['first']} to {trap['last']} of id {named(trap.get('id'))}, chain {trap.get('chain')}"
    return TellingText(", ".join(filter(None, parts)), [(label, str(trap.get("text")))])


def fixed_point_text(trap: Record) -> TellingText:
    """A fixed point or cycle of tau 0."""
    starts = trap["basin_count"]
    lead = "1 text leads" if starts == 1 else f"{starts} texts lead"
    heading = f"{str(trap['found']).replace('_', ' ')} to which {lead}"
    return TellingText(heading, [(f"margin {nats(trap.get('margin'))}", str(trap.get("text")))])


def likelihood_text(state: Record) -> TellingText:
    """A state with its pseudo-log-likelihood."""
    pll = state["pll"] / (tokens_of_pll(state) or 1)
    return TellingText(f"{nats(pll)} a token, {of_chain(state)}, step {state.get('step')}", [("", str(state["text"]))])


def rectangle_text(record: Record) -> TellingText:
    """A rectangle: the two sites and their changes."""
    words = record.get("words") or record.get("pieces") or record.get("tokens")
    changes = "" if not isinstance(words, list) or len(words) != 4 else (
        f", {words[0]} → {words[2]} at site {record['i']} and {words[1]} → {words[3]} at site {record['j']}")
    heading = f"delta {nats(float(record['delta']))}, tau {record['tau']:g}, id {named(record.get('id'))}"
    return TellingText(heading, [(f"model {record['model']}{changes}", str(record.get("text")))])
