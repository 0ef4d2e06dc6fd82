"""Common base of mechanisms and applications that users write: names, random numbers, durations."""

from __future__ import annotations

import re
import typing
from typing import ClassVar, Protocol

#: Picoseconds in each unit of time that scenario files allow.
_UNITS = {
    "ps": 1,
    "ns": 10**3,
    "us": 10**6,
    "µs": 10**6,
    "ms": 10**9,
    "s": 10**12,
    "min": 60 * 10**12,
    "h": 3600 * 10**12,
}
_DURATION = re.compile(r"(\d{1,18})(?:\.(\d{1,12}))? ?([a-zµ]+)")
_LARGEST = 2**63 - 1


class Random(Protocol):
    """Random numbers that depend only on the seed of the run."""

    def unit(self) -> float:
        """Return a uniform random number in [0, 1)."""

    def below(self, n: int) -> int:
        """Return a uniform random whole number from 0 to n - 1."""

    def exponential(self, mean_ps: int) -> int:
        """Return an exponentially distributed time in ps with this mean."""


class Duration(int):
    """A time in whole picoseconds, made from a number of ps or from a text such as ``"10 ms"``.

    A parameter with this type is a time with a unit in scenarios.
    """

    def __new__(cls, value: int | str = 0) -> Duration:
        """Return the duration of a number of ps or a text; raise ``ValueError`` for a bad text."""
        if not isinstance(value, str):
            return super().__new__(cls, value)
        found = _DURATION.fullmatch(value.strip())
        if found is None or found[3] not in _UNITS:
            units = ", ".join(_UNITS)
            raise ValueError(f"{value!r} is not a time such as '10 ms'; units are {units}")
        whole, decimals, unit = found[1], found[2] or "", found[3]
        ps, rest = divmod(int(whole + decimals) * _UNITS[unit], 10 ** len(decimals))
        if rest:
            raise ValueError(f"{value!r} is not a whole number of picoseconds")
        if ps > _LARGEST:
            raise ValueError(f"{value!r} is longer than {_LARGEST} ps, the maximum")
        return super().__new__(cls, ps)


class Base:
    """Base class of all mechanisms and applications that users write in Python."""

    name: ClassVar[str] = ""
    """Name in scenarios; by default made from the class name: ``MyQueue`` becomes ``my-queue``."""
    stream: ClassVar[str] = ""
    """Name of the stream of random numbers; by default the name of the mechanism in scenarios."""

    if typing.TYPE_CHECKING:
        random: Random
