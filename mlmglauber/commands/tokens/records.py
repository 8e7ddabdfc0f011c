"""The records of mlm-tokens: the sites of a text."""

from mlmglauber.commands.shared.chain_run import NO_RUN
from mlmglauber.commands.shared.inputs import Input, Inputs, inherited, text_exact
from mlmglauber.models.words import split_words
from mlmglauber.stream.errors import RecordError
from mlmglauber.stream.records import Record, record_id, text_or_ids


class TokenInputs(Inputs):
    """Reads texts of any length, also those that are too long or too short for a chain."""

    def _input(self, record: Record) -> Input:
        if self.model is None:
            self.model = self._open(record)
        name = record_id(record, self.io.count - 1)
        text, ids = text_or_ids(record)
        if ids is None:
            assert text is not None
            ids = self.model.encode(text)
        elif not all(0 <= token < self.model.vocab_size for token in ids):
            raise RecordError(f"a token id is outside the model's {self.model.vocab_size} tokens; name the model of "
                              "these ids with -m")
        return Input(self.io.place, name, ids, inherited(record), record, NO_RUN, self.model)


def tokens_record(run: str, text: Input, length: int | None) -> Record:
    """The tokens record of a text of which at most `length` tokens are kept."""
    model, ids = text.model, text.ids[:length]
    unknown = [site for site, token in enumerate(ids) if token == model.unknown_id]
    never = [site for site, token in enumerate(ids) if not model.allowed[token] and site not in unknown]
    whole = model.decode(ids)
    record: Record = {
        "type": "tokens", "run": run, "id": text.name, "n": len(ids), "tokens": len(text.ids),
        "cut": len(text.ids) - len(ids), "max_sites": model.max_sites, "ids": ids, "pieces": model.pieces(ids),
        "split_words": split_words(model, ids), "unknown": len(unknown), "unknown_sites": unknown,
        **({"never_drawn": never} if never else {}), "text": whole, **text_exact(model, whole, ids),
    }
    reason = _refused(text, ids, length, len(unknown))
    return record | {"taken": reason is None} | ({"taken_reason": reason} if reason else {})


def _refused(text: Input, ids: list[int], length: int | None, unknown: int) -> str | None:
    """Why other commands would not take the text."""
    tokens, most = len(text.ids), text.model.max_sites
    if tokens == 0:
        return "the text has no token"
    if length is not None and tokens < length:
        return f"{tokens} tokens, --length {length}: shorter texts are skipped"
    if len(ids) > most:
        return f"{len(ids)} tokens, the model takes {most}: shorten the text, or use --length"
    if unknown == len(ids):
        return "every token is unknown"
    try:
        text.model.check_ids(ids)
    except RecordError as error:
        return error.what
    return None
