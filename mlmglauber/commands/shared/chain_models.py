"""The model of a command, restricted to the tokens that the chains of each run may draw."""

from mlmglauber.commands.shared.chain_run import ChainLaw, ChainRun
from mlmglauber.commands.shared.filter import Filter
from mlmglauber.models.conditionals import TextModel
from mlmglauber.models.restricted import RestrictedModel, tokens_of
from mlmglauber.stream.errors import UsageError


class ChainModels:
    """Gives, for each run of chains, the one model of a command restricted to the tokens that the chains may draw."""

    def __init__(self, io: Filter, model: TextModel, otherwise: str = "give their texts without their ids"
                 ) -> None:
        """otherwise: what an error about states of another model advises besides naming the right model."""
        self.io, self.model, self.otherwise = io, model, otherwise
        self._described = model.describe()
        self._models: dict[ChainLaw, TextModel] = {}

    def of(self, run: ChainRun) -> TextModel:
        """The model for a run; UsageError if its chains are of another model."""
        if not run.known:
            self.io.once("no run record", lambda: self.io.reporter.warn(
                f"no run record came before states of run {run.run}: assuming {self._described['model']}, all its "
                "tokens, no frozen site, random scan; give the records as mlm-sample wrote them"))
        if run.law not in self._models:
            self._models[run.law] = self._restricted(run)
        return self._models[run.law]

    def _restricted(self, run: ChainRun) -> TextModel:
        self.check(run)
        if run.law.allow is None:
            return self.model
        tokens = tokens_of(self.model, ",".join(run.law.allow), f"--allow of run {run.run}")
        return RestrictedModel(self.model, tokens)

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
