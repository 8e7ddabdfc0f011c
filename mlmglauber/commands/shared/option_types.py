"""Types of the values of options: temperatures, lists of numbers, sites, shards."""

import re
from math import isfinite
from typing import Any, Literal

import click

from mlmglauber.dynamics.temperatures import Temperatures


class ScheduleOption(click.ParamType[str]):
    """A schedule of temperatures; its value is the schedule in the form that run records have."""

    name = "schedule"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return str(Temperatures.parse(str(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class TemperaturesOption(click.ParamType[list[float]]):
    """A temperature, finite and not negative, or several with commas between."""

    name = "tau"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        if isinstance(value, list):
            return value
        taus = []
        for part in str(value).split(","):
            try:
                tau = float(part) if "_" not in part else None
            except ValueError:
                tau = None
            if tau is None or not isfinite(tau) or tau < 0:
                self.fail(f"{part!r} is not a temperature; give a finite number, 0 or above, or several as in 0.5,1,2")
            taus.append(tau + 0.0)  # -0 is 0
        if len(set(taus)) < len(taus):
            self.fail(f"{value}: a temperature is given twice; give each once")
        return taus


class Real(click.FloatRange):
    """A finite number in a range; click alone accepts not-a-number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not isfinite(number) or "_" in str(value):
            self.fail(f"{value!r} is not a finite number; give one", param, ctx)
        return number


class Numbers(click.ParamType[list[float]]):
    """A number from `low` to `high`, or several with commas between."""

    name = "numbers"

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        if isinstance(value, list):
            return value
        try:
            numbers = [float(part) for part in str(value).split(",") if "_" not in str(value)]
        except ValueError:
            numbers = []
        if not numbers or not all(self.low <= number <= self.high for number in numbers):
            self.fail(f"{value!r}: give numbers from {self.low:g} to {self.high:g}, as in 0.3,0.5")
        return numbers


class Sites(click.ParamType[list[int]]):
    """Sites counted from 0, as in 0,3,5-7."""

    name = "sites"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        sites: set[int] = set()
        for part in str(value).split(","):
            match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part.strip())
            if match is None:
                self.fail(f"{part!r} is not a site; give numbers from 0 on, as in 0,3,5-7")
            sites.update(range(int(match[1]), int(match[2] or match[1]) + 1))
        return sorted(sites)


class BatchSizeOption(click.ParamType["int | Literal['auto']"]):
    """A number of rows, 1 or more, or "auto"."""

    name = "rows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | Literal["auto"]:
        if value == "auto":
            return "auto"
        if isinstance(value, int):
            return value
        try:
            rows = int(value)
        except ValueError:
            rows = 0
        if rows < 1:
            self.fail(f"{value!r} is not a number of rows; give 1 or more, or auto")
        return rows


class Shard(click.ParamType[tuple[int, int]]):
    """I/N, the I-th of N parts, counted from 1; its value is (I - 1, N)."""

    name = "shard"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", str(value))
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            self.fail(f"{value!r} is not a shard; give I/N, from 1/N to N/N")
        return int(match[1]) - 1, int(match[2])
