"""Search space of an optimisation: axes, conditions under which an axis is used, and points.

An axis has a list of values, or two bounds. Between the bounds, the axis has 50 steps with values
of three significant digits, so that values are readable and proposals can be equal to earlier
proposals. An axis with a condition (``when``) is used only in points where other axes have the
wanted values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from eastwest.sweep.values import Bound, between, same_kind, text

#: Number of steps from one bound of an axis to the other.
STEPS = 50
_DIGITS = 3

#: Settings of a point of the search space, by path.
Settings = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """Axis of the search space: one or more settings (``paths``) that are chosen together."""

    paths: tuple[str, ...]
    #: Values to choose from, one row for each choice; empty for an axis with bounds.
    rows: tuple[tuple[Any, ...], ...]
    #: (lower bound, upper bound, whether the scale is logarithmic); None with listed values.
    span: tuple[Bound, Bound, bool] | None = None
    #: Short names of the choices; empty if they have no names.
    names: tuple[str, ...] = ()
    #: Condition for the use of the axis: allowed values, as texts, of earlier axes, by path.
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Number of choices on the axis: the number of its rows, or ``STEPS`` + 1 with bounds."""
        return len(self.rows) if self.span is None else STEPS + 1

    @property
    def ordered(self) -> bool:
        """Whether the choices have an order: the axis has bounds, or at least 3 rising numbers."""
        if self.span is not None:
            return True
        bounds = [Bound.read(row[0]) for row in self.rows] if len(self.paths) == 1 else []
        known = [bound for bound in bounds if bound is not None]
        if len(known) < max(3, len(self.rows)):
            return False
        pairs = itertools.pairwise(known)
        return all(same_kind(a, b) and a.number < b.number for a, b in pairs)

    def row(self, choice: int) -> tuple[Any, ...]:
        """Return the values of choice number ``choice`` (from 0), in the order of ``paths``."""
        if self.span is None:
            return self.rows[choice]
        low, high, log = self.span
        return (between(low, high, [choice / STEPS], log, _DIGITS)[0],)

    def counts(self, settings: Settings) -> bool:
        """Whether the condition of the axis holds; ``settings`` are those of earlier axes."""
        return all(
            path in settings and text(settings[path]) in wanted
            for path, wanted in self.when.items()
        )

    def say(self, choice: int) -> str:
        """Return choice number ``choice`` as text, by its name or its values."""
        return self.names[choice] if self.names else ", ".join(text(v) for v in self.row(choice))


@dataclass(frozen=True)
class Space:
    """Search space of an optimisation: all of its axes."""

    axes: tuple[Axis, ...]

    @property
    def paths(self) -> list[str]:
        """Paths of all settings that the axes choose."""
        return [path for axis in self.axes for path in axis.paths]

    def count(self, most: int) -> int:
        """Return the number of points in the space, but at most ``most`` + 1."""
        return sum(1 for _ in itertools.islice(self.every(), most + 1))

    def point(self, choose: Callable[[int, Axis], int]) -> tuple[Settings, dict[int, int]]:
        """Return a point: (settings by path, number of the choice by number of the axis).

        ``choose`` is called with (number of the axis, axis) for each axis whose condition holds,
        and returns the number of the choice.
        """
        settings: Settings = {}
        choices: dict[int, int] = {}
        for number, axis in enumerate(self.axes):
            if axis.counts(settings):
                choices[number] = choose(number, axis)
                settings.update(zip(axis.paths, axis.row(choices[number]), strict=True))
        return settings, choices

    def every(self) -> Iterator[tuple[Settings, dict[int, int]]]:
        """Yield (settings, choices) of all points, in the form of ``point``; last axis fastest."""
        yield from self._below({}, {})

    def _below(
        self, settings: Settings, choices: dict[int, int]
    ) -> Iterator[tuple[Settings, dict[int, int]]]:
        number = max((*choices, *self._skipped(settings, choices)), default=-1) + 1
        if number == len(self.axes):
            yield settings, choices
            return
        axis = self.axes[number]
        for choice in range(axis.count):
            added = dict(zip(axis.paths, axis.row(choice), strict=True))
            yield from self._below({**settings, **added}, {**choices, number: choice})

    def _skipped(self, settings: Settings, choices: dict[int, int]) -> list[int]:
        """Return the numbers of the axes after the last choice, up to the next axis that is used.

        These axes are not used because their conditions do not hold for ``settings``.
        """
        found, number = [], max(choices, default=-1) + 1
        while number < len(self.axes) and not self.axes[number].counts(settings):
            found.append(number)
            number += 1
        return found

    def say(self, choices: Mapping[int, int]) -> str:
        """Return a point as text; ``choices`` has the choices by number of the axis."""
        parts = []
        for number, choice in sorted(choices.items()):
            axis = self.axes[number]
            name = axis.paths[0].rpartition(".")[2]
            said = axis.say(choice)
            parts.append(said if axis.names else f"{name} {said}")
        return ", ".join(parts)
