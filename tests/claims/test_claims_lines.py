"""Measures of growth along an axis of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from eastwest.claims.measures.base import Data, MeasureError, Sample
from eastwest.claims.measures.of_study import module_of
from project_paths import PAPERS

lines = module_of(PAPERS / "eeon_ch4")

LOAD = "workload.0.count"


def data(
    values: Mapping[str, Sequence[Sequence[float]]], places: Sequence[Any] = (1, 2, 4)
) -> Data:
    """Return made-up runs with these values: by name, by point, by seed."""

    class Fake:
        def samples(self, value: str) -> list[Sample]:
            rows = zip(places, values[value], strict=True)
            return [Sample({LOAD: place}, dict(enumerate(row))) for place, row in rows]

    return cast(Data, Fake())


def test_a_rising_line_is_straight_and_a_falling_one_is_not() -> None:
    rising = lines.straightness(data({"t": [[11, 12], [21, 22], [41, 42]]}), "t", LOAD)
    assert rising.value == pytest.approx(1)
    assert (rising.seeds, len(rising.rows)) == (2, 3)
    assert lines.straightness(data({"t": [[41, 42], [21, 22], [11, 12]]}), "t", LOAD).value == 0
    assert lines.straightness(data({"t": [[5, 5], [5, 5], [5, 5]]}), "t", LOAD).value == 0
    bent = lines.straightness(data({"t": [[0, 0], [0, 0], [9, 9]]}), "t", LOAD)
    assert 0.8 < bent.value < 1


def test_places_are_taken_in_rising_order() -> None:
    shuffled = data(
        {"t": [[40, 41], [10, 11], [20, 21]], "m": [[20, 20], [8, 8], [15, 15]]}, (4, 1, 2)
    )
    assert lines.straightness(shuffled, "t", LOAD).value == pytest.approx(1)
    assert lines.gap_growth(shuffled, "t", "m", LOAD).value == pytest.approx((20 / 2 + 21 / 3) / 2)


def test_what_is_no_line_is_refused() -> None:
    with pytest.raises(MeasureError, match="a line needs three"):
        lines.straightness(data({"t": [[1], [2]]}, (1, 2)), "t", LOAD)
    with pytest.raises(MeasureError, match="no axis of numbers"):
        lines.straightness(data({"t": [[1], [2], [3]]}, ("a", "b", "c")), "t", LOAD)
    with pytest.raises(MeasureError, match="is not above"):
        lines.gap_growth(data({"t": [[1], [2], [3]], "m": [[2], [2], [2]]}), "t", "m", LOAD)
