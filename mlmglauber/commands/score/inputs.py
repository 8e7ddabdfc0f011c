"""Reads what mlm-score scores: texts, states by their ids, and states of another model's chains by their text."""

from mlmglauber.commands.score.options import ScoreOptions
from mlmglauber.commands.shared.chain_models import ChainModels
from mlmglauber.commands.shared.chain_run import NO_RUN
from mlmglauber.commands.shared.inputs import Input, Inputs, tally_unknown, token_ids
from mlmglauber.models.conditionals import TextModel
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record, record_id


class ScoreInputs(Inputs):
    """The texts of mlm-score. A state with masked sites is an input without ids, to be written with null scores."""

    options: ScoreOptions

    def _input(self, record: Record) -> Input | None:
        if self.model is None:
            self.model = self._open(record)
            self.chains = ChainModels(self.io, self.model)
        name, length = record_id(record, self.io.count - 1), self.options.length
        if self.io.leaves_out(record, "given no score"):
            return Input(self.io.place, name, [], {}, record, NO_RUN, self.model)
        is_state, model, scored = record.get("type") == "state", self.model, record
        if is_state:
            model, scored = self._state(record)
        ids = token_ids(model, scored, None if is_state else length)
        if ids is None or (length is not None and len(ids) < length):
            self.too_short += 1
            return None
        if length is not None and len(ids) > length:
            raise RecordError(f"the state has {len(ids)} tokens, and a part of a state has no scores of its own; leave "
                              "--length out")
        tally_unknown(self.io, scored, ids)
        return Input(self.io.place, name, ids, {}, record, NO_RUN, model)

    def _state(self, record: Record) -> tuple[TextModel, Record]:
        """The model that scores a state, and the record that holds what is scored.

        A causal model makes no chains, so it scores the text; so does another model than that of the chain.
        """
        assert self.model is not None
        assert self.chains is not None
        chain, causal = self.io.runs.of(record), self.model.has_joint
        if causal or self.chains.difference(chain) is not None:
            if not causal:
                self.io.once(("other model", chain.run), lambda: self.io.reporter.warn(
                    f"run {chain.run} was made with the model {chain.law.model}: the texts of its states are scored"))
            return self.model, {name: record[name] for name in ("text",) if name in record}
        model = self.chains.of(chain)
        return self.model if self.options.all_tokens else model, record
