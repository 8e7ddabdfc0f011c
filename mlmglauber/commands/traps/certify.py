"""mlm-traps certify: whether repeats of a token are self-reinforcing, and how long they would last."""

from collections.abc import Iterator, Sequence

import numpy as np

from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.inputs import Input, Inputs, texts_at_once
from mlmglauber.commands.shared.nullable import nullable
from mlmglauber.commands.traps.options import TrapsOptions
from mlmglauber.dynamics.randomness import Stream, drawn_seed
from mlmglauber.dynamics.token_copies import filled, thinned
from mlmglauber.measures.traps.token_count import Level, Values, basin, chances, change, fall_time, growing, level
from mlmglauber.models.conditionals import Floats, Ids, TextModel
from mlmglauber.models.words import named_token
from mlmglauber.stream.errors import RecordError, UsageError
from mlmglauber.stream.records import Record

SHORTLIST = 4
"""Number of candidates that --scan-tokens scores at all sites, in multiples of the number of tokens asked for."""


class CertifyRun:
    """One run of --token, --scan-tokens or both; keeps as many texts as there are contexts."""

    def __init__(self, io: Filter, options: TrapsOptions) -> None:
        self.seed = drawn_seed() if options.seed is None else options.seed
        self.io, self.inputs = io, Inputs(io, options, options.of_certificates(), self.seed)
        self.tokens, self.contexts, self.draw = options.certify, options.contexts, options.draw
        self.scan, self.candidates = options.scan_tokens, options.candidates
        self.taus, self.rows = options.tau, texts_at_once(options)
        self.texts: list[Input] = []

    def run(self) -> None:
        """Make contexts of the first texts and check the others; write the summaries."""
        for batch in self.inputs.batches(self.rows):
            for text in batch[: self.contexts - len(self.texts)]:
                with self.io.guard(text.place):
                    if text.chain.law.restrictions() or text.chain.allow_at is not None:
                        raise RecordError("the run of the state has --allow, --top-k or --freeze, or the like, but "
                                          "tokens are tested in the whole model at all sites; give its text alone")
                    self.texts.append(text)
        if not self.texts:
            return
        model = self.inputs.model
        assert model is not None
        lengths = {len(text.ids) for text in self.texts}
        if len(lengths) > 1:
            raise UsageError(f"the texts have {min(lengths)} to {max(lengths)} tokens, but must all have one length; "
                             "give --length")
        try:
            tokens = [named_token(model, word) for word in self.tokens]
        except RecordError as error:
            raise UsageError(f"--token: {error.what}") from error
        n = lengths.pop()
        if self.scan is not None:
            for record in self._scan(model, n, self.scan):
                self.io.output.write(record)
        with self.io.reporter.bar("numbers of copies", len(tokens) * len(self.taus) * (n + 1)) as progress:
            for token in tokens:
                for tau in self.taus:
                    levels: list[Level | None] = []
                    for k, states in enumerate(self._states(model, token, tau, n)):
                        levels.append(self._level(model, token, tau, k, states))
                        progress(1)
                    self.io.output.write({"type": "summary", "of": "trap", "over": "token", "run": self.inputs.run,
                                              "tau": tau, "n": n, "token": token, "word": model.decode([token]),
                                              "draw": self.draw, "contexts": self.contexts, **certificate(n, levels)})
                    self.io.output.flush()

    def _level(self, model: TextModel, token: int, tau: float, k: int, states: Ids) -> Level | None:
        """The drift at k copies; None where every text has more copies than k."""
        if not len(states):
            return None
        n = states.shape[1]
        distinct, places = np.unique(states[:1] if k == n else states, axis=0, return_inverse=True)
        stays = self._chances(model, distinct, [token] * len(distinct), [tau])[0]
        changes = [change(state, token, row) for state, row in zip(distinct, stays, strict=True)]
        return level(k, n, [changes[place] for place in places.ravel()], len(distinct))

    def _states(self, model: TextModel, token: int, tau: float, n: int) -> list[Ids]:
        """For k = 0 ... n the states with k copies: one for each context, fewer where texts have more copies than k."""
        contexts = [self.texts[number % len(self.texts)] for number in range(self.contexts)]
        uniforms = np.array([Stream(self.seed, text.name, number, "copies").uniforms(0, 2 * n)
                             for number, text in enumerate(contexts)])
        orders = uniforms[:, :n].argsort(axis=1, kind="stable")
        if self.draw == "texts":
            return filled([np.array(text.ids) for text in contexts], token, orders)
        try:
            return thinned(model, token, tau, orders, uniforms[:, n:], self.rows)
        except ValueError as error:
            raise RecordError(f"{error} beside copies of {model.decode([token])!r}; try --draw texts") from error

    def _chances(self, model: TextModel, states: Ids, tokens: Sequence[int], taus: Sequence[float],
                 sites: Sequence[int] | None = None) -> Values:
        """(temperatures, states, sites): the probability of each state's token at each site, all sites by default."""
        wanted = np.arange(states.shape[1]) if sites is None else np.array(sites)
        ids, places = np.repeat(states, len(wanted), axis=0), np.tile(wanted, len(states))
        token_of_row = np.repeat(tokens, len(wanted))
        result = np.empty((len(taus), len(ids)))
        for start in range(0, len(ids), self.rows):
            here = slice(start, start + self.rows)
            rows = log_probs(model, ids[here], places[here])
            for k, tau in enumerate(taus):
                result[k, here] = chances(rows, token_of_row[here], tau)
        return result.reshape(len(taus), len(states), len(wanted))

    def _scan(self, model: TextModel, n: int, count: int) -> Iterator[Record]:
        """The tokens whose copies support each other most.

        Candidates are the most likely tokens of the texts. They are scored at the middle site; the best of them, the
        shortlist, at all sites.
        """
        total = np.zeros(model.vocab_size)
        for text in self.texts:
            total += np.exp(log_probs(model, np.repeat([text.ids], n, axis=0), np.arange(n)).astype(np.float64)).sum(0)
        candidates = np.flatnonzero(model.allowed)
        candidates = candidates[np.argsort(-total[candidates], kind="stable")[: self.candidates]]
        middle = self._chances(model, np.repeat(candidates[:, None], n, axis=1), candidates.tolist(), self.taus[:1],
                               [n // 2])[0, :, 0]
        close = candidates[np.argsort(-middle, kind="stable")[: SHORTLIST * count]]
        stays = self._chances(model, np.repeat(close[:, None], n, axis=1), close.tolist(), self.taus).mean(axis=2)
        for tau, of_tau in zip(self.taus, stays, strict=True):
            best = np.argsort(-of_tau, kind="stable")[:count]
            yield {"type": "summary", "of": "trap", "over": "vocabulary", "run": self.inputs.run, "tau": tau, "n": n,
                   "candidates": len(candidates), "tokens": [
                       {"token": int(close[k]), "word": model.decode([int(close[k])]),
                        **full_fields(1 - float(of_tau[k]))} for k in best]}


def log_probs(model: TextModel, ids: Ids, sites: Ids) -> Floats:
    """The conditionals of states that were made here; the error therefore names no record of the input."""
    rows = model.log_probs(ids, sites)
    if not np.isfinite(rows.max(axis=1)).all():
        raise RecordError("a conditional of the model is not finite; use another model")
    return rows


def full_fields(escape: float) -> Record:
    """For the state of n copies: the exact probability that one step leaves it, and the expected number of steps."""
    return {"escape": escape} | nullable("expected", 1 / escape if escape > 0 else None, "the state is never left")


def certificate(n: int, levels: Sequence[Level | None]) -> Record:
    """The fields that follow from the levels k = 0 ... n; a level that no context reaches is left out."""
    known = [one for one in levels if one is not None]
    of_copies = basin([one and one.drift for one in levels])
    record: Record = {
        "levels": [one._asdict() for one in known], "growing": growing([one and one.drift for one in levels]),
        "growing_all": growing([one and one.least for one in levels]),
        "full": full_fields(known[-1].down), "basin": of_copies and of_copies._asdict(),
    }
    if of_copies is None:
        everywhere = record["growing"] == [(0, n - 1)]
        reason = ("copies grow from everywhere: there is no threshold" if everywhere
                  else "no range of copies that grows above one that shrinks")
        return record | {"escape_steps": None, "reason": reason}
    ups, downs = ([one and getattr(one, name) for one in levels] for name in ("up", "down"))
    steps = fall_time(ups, downs, of_copies.stable, of_copies.threshold - 1)
    return record | {"escape_steps": steps, "escape_from_full": fall_time(ups, downs, n, of_copies.threshold - 1),
                     **({} if steps is not None else {"reason": "the time is not finite, or a level was not reached"})}
