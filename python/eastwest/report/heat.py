"""Heat maps: one row for each name, one column for each interval of time, larger values darker.

The page's script gets each value as one byte: the square root of its share of the largest value,
because the root represents small values more exactly. The picture itself has `LEVELS` colours.
"""

from __future__ import annotations

import base64
import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eastwest.report.draw import WIDTH, Chart, Scale, time, whole
from eastwest.views.series import Bins, Floats

LEVELS = 9


def packed(values: Floats, top: float) -> str:
    """Return values as bytes in base64: 255 · √(value / ``top``), rounded up, so only 0 gives 0."""
    strength = np.ceil(255 * _roots(values, top) - 1e-9)
    return base64.b64encode(strength.astype(np.uint8).tobytes()).decode()


def levels(values: Floats, top: float) -> npt.NDArray[np.int64]:
    """Return the step of each value on the colour scale: LEVELS · √(value / ``top``), rounded."""
    return np.asarray(np.floor(LEVELS * _roots(values, top) + 0.5), dtype=np.int64)


def _roots(values: Floats, top: float) -> Floats:
    """Return √(value / ``top``) of each value, limited to the range from 0 to 1."""
    return np.asarray(np.sqrt(np.clip(values / top if top > 0 else values * 0, 0, 1)))


@dataclass(frozen=True)
class Heat:
    """A heat map: ``values`` is an array (names, bins) of a quantity over time."""

    name: str
    title: str
    note: str
    names: list[str]
    bins: Bins
    values: Floats
    label: str
    unit: str
    #: Value that has the strongest colour; 0 for the largest value.
    top: float = 0.0

    def chart(self, end: float) -> Chart:
        """Return the chart of the heat map; ``end`` is the end of its time axis in s."""
        tall = 15 if len(self.names) <= 32 else 10
        top = self.top or float(self.values.max(initial=0.0)) or 1.0
        chart = Chart(
            self.name,
            self.title,
            self.note,
            time(end),
            Scale("linear", 0, top, self.label, self.unit),
            height=tall * len(self.names),
            wide=True,
            rows=self.names,
            css="heat",
        )
        grid = levels(self.values, top)
        borders = whole(np.clip(chart.x.place(self.bins.edges), 0, 1) * WIDTH)
        shapes: dict[int, list[str]] = {level: [] for level in range(1, LEVELS + 1)}
        for row, line in enumerate(grid):
            changes = np.flatnonzero(np.diff(line)) + 1
            starts = [0, *changes.tolist(), line.size]
            for first, last in itertools.pairwise(starts):
                level = int(line[first]) if line.size else 0
                if level:
                    shapes[level].append(
                        f"M{borders[first]} {row * tall}H{borders[last]}v{tall - 1}"
                        f"H{borders[first]}z"
                    )
        for level, parts in shapes.items():
            chart.add(f"cell q{level}", "".join(parts))
        chart.data = {
            "type": "heat",
            "step": self.bins.step,
            "columns": self.bins.count,
            "top": float(f"{top:.6g}"),
            "row": tall,
            "names": self.names,
            "label": self.label,
            "cells": packed(self.values, top),
        }
        rows = []
        for name, line in zip(self.names, self.values, strict=True):
            at = chart.x.write(float(self.bins.step * (int(line.argmax()) + 0.5)))
            rows.append([name, chart.y.write(line.mean()), chart.y.write(line.max()), at])
        chart.table = (["", f"{self.label}, mean", "largest", "at"], rows)
        return chart
