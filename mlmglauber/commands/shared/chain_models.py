"""The model of a command, restricted to the tokens that the chains of each run may draw."""

from cachetools import LRUCache

from mlmglauber.commands.shared.chain_run import ChainLaw, ChainRun
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.commands.shared.site_allow import choices_of
from mlmglauber.commands.shared.word_lists import read_words, restricted_model
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.restricted import SiteRestrictedModel, truncated_model
from mlmglauber.stream.errors import UsageError

KEPT = 1024
"""Maximum number of restricted models that are kept; each text may have one of its own."""


class ChainModels:
    """Gives, for each run of chains, the one model of a command restricted to the tokens that the chains may draw."""

    def __init__(self, io: Filter, model: TextModel, otherwise: str = "give their texts without their ids"
                 ) -> None:
        """otherwise: what an error about states of another model advises besides naming the right model."""
        self.io, self.model, self.otherwise = io, model, otherwise
        self._described = model.describe()
        self._models: LRUCache[tuple[ChainLaw, str | None], TextModel] = LRUCache(KEPT)

    def of(self, run: ChainRun) -> TextModel:
        """The model for a run; UsageError if its chains are of another model."""
        if not run.known:
            self.io.once("no run record", lambda: self.io.reporter.warn(
                f"no run record came before states of run {run.run}: assuming {self._described['model']}, all its "
                "tokens, no frozen site, random scan; give the records as mlm-sample wrote them"))
        return self.of_text(run)

    def of_text(self, run: ChainRun) -> TextModel:
        """As `of`, for a text, which needs no run."""
        key = run.law, run.allow_at
        if key not in self._models:
            self._models[key] = self._restricted(run)
        return self._models[key]

    def _restricted(self, run: ChainRun) -> TextModel:
        if run.allow_at is not None:
            model = self.of_text(run._replace(allow_at=None, law=run.law._replace(truncation=None)))
            restricted = SiteRestrictedModel(model, choices_of(model, run.allow_at))
            return truncated_model(restricted, run.law.truncation)
        self.check(run)
        allowed = read_words(run.law.allow, f"--allow of run {run.run}")
        banned = read_words(run.law.ban or None, f"--ban-file of run {run.run}")
        return truncated_model(restricted_model(self.model, None, allowed, banned), run.law.truncation)

    def difference(self, run: ChainRun) -> tuple[str, str] | None:
        """In what the model of a run's chains differs from the command's, and its value there; None for the same one.

        What both runs tell decides: the hash of the weights, else the revision, else the name.
        """
        theirs = run.law
        for key, value in (("hash", theirs.hash), ("revision", theirs.revision), ("model", theirs.model)):
            if self._described.get(key) is not None and value is not None:
                return (key, value) if self._described[key] != value else None
        return None

    def check(self, run: ChainRun) -> None:
        """UsageError for chains of another model; a warning for chains of another precision."""
        ours, theirs = self._described, run.law
        different = self.difference(run)
        if different is not None:
            key, value = different
            raise UsageError(f"run {run.run} was made with the model {theirs.model} ({key} {value}), not with "
                             f"{ours['model']} ({ours[key]}); name its model with -m, or {self.otherwise}")
        here = ours.get("precision", ours["dtype"])
        if theirs.precision not in (None, here):
            self.io.once(("number format", run.run), lambda: self.io.reporter.warn(
                f"the chains of run {run.run} are defined in {theirs.precision}, but this command computes in {here}; "
                "give the --dtype and --exact of that run"))
