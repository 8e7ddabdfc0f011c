"""--top-k, --top-p and --min-p: only the likeliest tokens of a conditional at its temperature may be drawn."""

from typing import TYPE_CHECKING, Any

import click

from mlmglauber.commands.shared.option_types import Real

if TYPE_CHECKING:
    from mlmglauber.models.truncation import Truncation

TRUNCATION_NAMES = ("top_k", "top_p", "min_p")
"""The options by the names that run records and summaries give them."""


def truncation_options(function: Any) -> Any:
    """--top-k, --top-p and --min-p."""
    for name, kind, metavar, what in (
            ("--min-p", Real(0, 1), "P", "Draw only tokens of at least P times the largest probability."),
            ("--top-p", Real(0, 1, min_open=True), "P",
             "Draw only the fewest likeliest tokens whose probabilities add up to P."),
            ("--top-k", click.IntRange(1), "K",
             "Draw only the K likeliest tokens, renormalised: another chain, as with --top-p and --min-p.")):
        function = click.option(name, type=kind, metavar=metavar, help=what)(function)
    return function


def truncation_of(options: Any) -> "Truncation | None":
    """The truncation that options ask for; None where they cut off nothing."""
    from mlmglauber.models.truncation import Truncation

    return Truncation.given(options.top_k, options.top_p, options.min_p)


def recorded_truncation(options: dict[str, Any]) -> "Truncation | None":
    """The truncation of the options of a run record; ValueError for values that the options do not take."""
    from mlmglauber.models.truncation import Truncation

    top_k, top_p, min_p = (options.get(name) for name in TRUNCATION_NAMES)
    if not ((top_k is None or (type(top_k) is int and top_k >= 1))
            and (top_p is None or (type(top_p) in (int, float) and 0 < top_p <= 1))
            and (min_p is None or (type(min_p) in (int, float) and 0 <= min_p <= 1))):
        raise ValueError
    return Truncation.given(top_k, top_p, min_p)
