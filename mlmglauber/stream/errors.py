"""Exit statuses, and the errors that lead to them. Every message says what happened, then what to do."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit statuses of all commands; the man pages explain them."""

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
    """A warning about a run that continues; a command prints each one once."""


class MlmError(Exception):
    """An error that the user can correct: a line `what happened; what to do`, and the exit status."""

    status = ExitStatus.FAILED


class UsageError(MlmError):
    """Options are invalid or contradict each other."""

    status = ExitStatus.USAGE


class RecordError(MlmError):
    """One record is bad; the other records are still processed.

    what: the message. place: FILE:LINE, None until the reader of the records adds it.
    """

    status = ExitStatus.BAD_RECORD

    def __init__(self, what: str, place: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.place = place

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" if self.place else self.what


class MixedRecordsError(MlmError):
    """Records that cannot be combined: the input ends there, and the records before are processed."""

    status = ExitStatus.BAD_RECORD


class InputError(MlmError):
    """An input file cannot be opened."""

    status = ExitStatus.NO_INPUT


class ModelError(MlmError):
    """A model is missing, of the wrong kind, or not to be trusted."""

    status = ExitStatus.NO_MODEL


class OutputError(MlmError):
    """The output file cannot be created."""

    status = ExitStatus.CANNOT_CREATE


class LockedError(MlmError):
    """Another run is writing to the output file."""

    status = ExitStatus.LOCKED
