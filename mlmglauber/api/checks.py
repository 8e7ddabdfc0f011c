"""Checks of the arguments of the functions for Python: a ValueError says which one is wrong, and what it may be."""

from collections.abc import Sequence
from math import isfinite


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """ValueError for a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; choose one of {', '.join(choices)}")


def check_tau(tau: float, zero: bool = True) -> None:
    """ValueError for a temperature that is negative or not finite; for 0 too, unless `zero`."""
    if not (isfinite(tau) and (tau > 0 or (zero and tau == 0))):
        raise ValueError(f"tau is {tau}; a temperature is a finite number {'from 0 on' if zero else 'above 0'}")


def check_count(name: str, value: int, least: int) -> None:
    """ValueError for a number that is not whole or is below `least`."""
    if int(value) != value or value < least:
        raise ValueError(f"{name} is {value}; give a whole number from {least} on")


def check_sites(name: str, sites: Sequence[int], n: int) -> None:
    """ValueError for a site that a text of n tokens does not have, and for one that is given twice."""
    if any(int(site) != site or not 0 <= site < n for site in sites) or len(set(sites)) < len(sites):
        raise ValueError(f"{name} is {list(sites)}; give different sites from 0 to {n - 1}")


def check_words(name: str, words: Sequence[str]) -> str:
    """The words with commas between them; ValueError for a text in the place of a list, and for a word with a comma."""
    if isinstance(words, str) or not words or any("," in word for word in words):
        raise ValueError(f"{name} is {words!r}; give a list of words without commas")
    return ",".join(words)
