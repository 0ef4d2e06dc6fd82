"""Cells of tables of sweeps: means with their intervals, and ratios to the baseline."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import polars as pl
import pytest

from eastwest import units
from eastwest.sweep import SweepResult
from eastwest.views import points


def test_an_interval_down_to_0_is_shown_by_its_upper_end() -> None:
    def shown(mean: float, low: float | None, high: float | None) -> str:
        return str(points.value({"mean": mean, "low": low, "high": high}, units.span, None))

    assert shown(1.0, 0.9, 1.1) == "1 s ± 10 %"
    assert shown(1.0, -0.55, 2.55) == "1 s (≤ 2.55 s)"
    assert shown(1.0, None, None) == "1 s"


@pytest.mark.parametrize(
    ("difference", "half", "said"),
    [
        (-0.5, 0.2, "× 0.50 ± 0.20"),
        (-1.0, 1.15, "× 0.00 (≤ 1.1)"),
        (-0.15, 1.0, "× 0.85 (≤ 1.9)"),
        (-0.5, None, "× 0.50"),
    ],
)
def test_a_ratio_that_may_be_0_is_shown_as_a_range(
    difference: float, half: float | None, said: str
) -> None:
    ends = (None, None) if half is None else (difference - half, difference + half)
    row = {
        "point": 1, "metric": "m", "difference": difference, "low": ends[0], "high": ends[1],
        "baseline_mean": 1.0,
    }  # fmt: skip
    found = cast(SweepResult, SimpleNamespace(comparisons=pl.DataFrame([row])))
    assert points.factors(found) == {(1, "m"): said}
