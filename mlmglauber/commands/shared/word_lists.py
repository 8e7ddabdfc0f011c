"""Files of words, one a line: the tokens that chains may draw (--allow-file), and those they may not (--ban-file)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mlmglauber.stream.errors import ExitStatus, MlmError, RecordError
from mlmglauber.stream.formats import MAX_LINE
from mlmglauber.stream.lines import Lines

if TYPE_CHECKING:
    from mlmglauber.models.conditionals import TextModel


class WordListError(MlmError):
    """A line of a file of words is not one token of the model."""

    status = ExitStatus.BAD_RECORD


@dataclass(frozen=True)
class WordList:
    """The words of a file, and the place FILE:LINE of each."""

    words: tuple[str, ...]
    places: tuple[str, ...]

    def tokens(self, model: "TextModel") -> list[int]:
        """The tokens, which several words may share; WordListError for a word that is not one token of the model."""
        from mlmglauber.models.words import named_token

        tokens = []
        for word, place in zip(self.words, self.places, strict=True):
            try:
                tokens.append(named_token(model, word))
            except RecordError as error:
                raise WordListError(f"{place}: {error.what}") from error
        return tokens


def read_words(value: Any, option: str) -> WordList | None:
    """The words of a file, or of a list that a run record holds; None for None.

    InputError for a file that cannot be read; WordListError for a line that is not UTF-8, and for a file without words.
    """
    if value is None or isinstance(value, WordList):
        return value
    if not isinstance(value, str):
        return WordList(tuple(map(str, value)), (option,) * len(value))
    words, places, lines = [], [], Lines([value])
    while (line := lines.next()) is not None:
        if line.content is None:
            raise WordListError(f"{line.place}: {line.error or f'the line has more than {MAX_LINE} bytes'}")
        try:
            word = line.content.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise WordListError(f"{line.place}: invalid UTF-8 at byte {error.start + 1}; convert the file with "
                                "iconv") from error
        if word:
            words.append(word)
            places.append(line.place)
    if not words:
        raise WordListError(f"{value}: the file of {option} has no word; give one word a line")
    return WordList(tuple(words), tuple(places))


OptionsT = TypeVar("OptionsT", bound=Any)


def with_words(options: OptionsT) -> OptionsT:
    """The options with their files of words read."""
    return replace(options, allow_file=read_words(options.allow_file, "--allow-file"),
                   ban_file=read_words(options.ban_file, "--ban-file"))


def restricted_model(model: "TextModel", allow: str | None, allow_file: WordList | None,
                     ban_file: WordList | None) -> "TextModel":
    """The model over the tokens of --allow and --allow-file, or over all, without those of --ban-file.

    The model itself without these options. UsageError where no token is left.
    """
    from mlmglauber.models.restricted import restricted, tokens_of

    allowed: Sequence[int] | None = None
    if allow is not None or allow_file is not None:
        allowed = [*(tokens_of(model, allow, "--allow") if allow is not None else ()),
                   *(allow_file.tokens(model) if allow_file is not None else ())]
    return restricted(model, allowed, ban_file.tokens(model) if ban_file is not None else ())


def word_file_options(function: Any) -> Any:
    """--allow-file and --ban-file."""
    for name, what in (("--ban-file", "Draw none of the tokens of FILE, one a line."),
                       ("--allow-file", "Draw only the tokens of FILE, one a line, and those of --allow.")):
        function = click.option(name, type=click.Path(), metavar="FILE", help=what)(function)
    return function
