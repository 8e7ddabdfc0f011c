"""Checks of the arguments of the functions for Python: a ValueError says which one is wrong, and what it may be."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from numbers import Integral, Real
from typing import Any

from mlmglauber.stream.errors import InputError, MlmError, ModelError

FLAG = re.compile(r"(?<!mlm-embed )--([a-z]+(?:-[a-z]+)*)")
"""The name of an option in a message, unless the message names a whole command."""


@contextmanager
def python_errors() -> Iterator[None]:
    """As a decorator: errors of lower floors become ValueErrors that name arguments in the place of options.

    A model or a file that cannot be read stays a ModelError or an InputError.
    """
    try:
        yield
    except MlmError as error:
        text = FLAG.sub(lambda found: found[1].replace("-", "_"), str(error))
        raise (type(error) if isinstance(error, (InputError, ModelError)) else ValueError)(text) from error


def _is_a(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def check_model(model: Any) -> None:
    """ValueError for what is not a model of this package: a name or a path, a network, a tokenizer."""
    if not (hasattr(model, "encode") and hasattr(model, "log_probs")):
        raise ValueError(f"the model is {str(model)[:100]!r}; open it with open_model first")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """ValueError for a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(choices)}")


def check_tau(tau: Any, zero: bool = True) -> None:
    """ValueError for a temperature that is negative or not finite; for 0 too, unless `zero`."""
    if not (_is_a(Real, tau) and isfinite(tau) and (tau > 0 or (zero and tau == 0))):
        raise ValueError(f"tau is {tau!r}; a temperature is a finite number {'from 0 on' if zero else 'above 0'}")


def check_share(name: str, value: Any, zero: bool = True) -> None:
    """ValueError for a number that is not between 0 and 1, or is 0, unless `zero`; None is no number to check."""
    if value is not None and not (_is_a(Real, value) and 0 <= value <= 1 and (zero or value > 0)):
        raise ValueError(f"{name} is {value!r}; give a number {'from 0' if zero else 'above 0 and up'} to 1")


def check_count(name: str, value: Any, least: int) -> None:
    """ValueError for a number that is not whole or is below `least`."""
    if not _is_a(Real, value) or not isfinite(value) or int(value) != value or value < least:
        raise ValueError(f"{name} is {value!r}; give a whole number from {least} on")


def check_sites(name: str, sites: Any, n: int) -> None:
    """ValueError for a site that a text of n tokens does not have, and for one that is given twice."""
    if not isinstance(sites, (Sequence, range)) and not hasattr(sites, "tolist"):
        raise ValueError(f"{name} is {sites!r}; give a list of sites from 0 to {n - 1}")
    if any(not _is_a(Integral, site) or not 0 <= site < n for site in sites) or len(set(sites)) < len(sites):
        raise ValueError(f"{name} is {list(sites)}; give different sites from 0 to {n - 1}")


def check_words(name: str, words: Any) -> str:
    """The words with commas between them; ValueError for a text in the place of a list, and for a word with a comma."""
    if isinstance(words, str) or not words or any(not isinstance(word, str) or "," in word for word in words):
        raise ValueError(f"{name} is {words!r}; give a list of words without commas")
    return ",".join(words)
