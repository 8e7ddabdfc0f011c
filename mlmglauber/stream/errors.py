"""Exit statuses and the errors that carry them. Every message ends with the next step to take."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """What a command's exit status says. The man pages print this table."""

    OK = 0
    FAILED = 1
    USAGE = 2
    BAD_RECORD = 65
    NO_INPUT = 66
    NO_MODEL = 69
    OUR_BUG = 70
    CANNOT_CREATE = 73
    CANNOT_WRITE = 74
    LOCKED = 75
    INTERRUPTED = 130


class MlmWarning(UserWarning):
    """What a user should know of a run that goes on; a command says it once."""


class MlmError(Exception):
    """An error that a user can act on: one line, `what; what to do`, and a status."""

    status = ExitStatus.FAILED


class UsageError(MlmError):
    """Options that contradict each other or have no meaning."""

    status = ExitStatus.USAGE


class RecordError(MlmError):
    """One record is bad; the others are still answered.

    `place` is `file:line` where it is known; the record reader fills it in.
    """

    status = ExitStatus.BAD_RECORD

    def __init__(self, what: str, place: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place else self.what


class MixedRecordsError(MlmError):
    """Records that have no meaning together: the input ends there, and what stood before is answered."""

    status = ExitStatus.BAD_RECORD


class InputError(MlmError):
    """An input file cannot be opened."""

    status = ExitStatus.NO_INPUT


class ModelError(MlmError):
    """A model is missing, is not of the kind that is needed, or cannot be trusted."""

    status = ExitStatus.NO_MODEL


class OutputError(MlmError):
    """The output file cannot be created."""

    status = ExitStatus.CANNOT_CREATE


class LockedError(MlmError):
    """Another run holds the output file."""

    status = ExitStatus.LOCKED
