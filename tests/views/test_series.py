"""Series: counts of things in progress are exact, and percentiles are defined as in summaries."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from eastwest import by_workload
from eastwest.views.series import in_progress, percentile


def test_an_interval_without_a_begin_or_an_end_has_a_whole_number() -> None:
    random = np.random.default_rng(1)
    starts = random.uniform(0, 14_000, 3000)
    ends = starts + random.uniform(1, 30, 3000)
    edges = np.asarray(np.arange(15_001) * 0.96, dtype=np.float64)
    found = in_progress(starts, ends, edges)
    times = np.concatenate([starts, ends])
    quiet = np.histogram(times, edges)[0] == 0
    assert quiet.sum() > 100
    assert (found[quiet] == np.rint(found[quiet])).all()
    assert found.min() == 0.0
    assert (found * 0.96).sum() == pytest.approx((ends - starts).sum(), rel=1e-9)


def test_things_in_progress_at_the_borders() -> None:
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    starts, ends = np.array([-1.0, 0.5, 1.0, 2.5]), np.array([0.5, 2.0, 2.0, 9.0])
    assert in_progress(starts, ends, edges).tolist() == [1.0, 2.0, 0.5]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 99, 100, 101])
@pytest.mark.parametrize(("name", "share"), [("p50", 0.5), ("p99", 0.99), ("max", 1.0)])
def test_percentiles_are_those_of_summaries(count: int, name: str, share: float) -> None:
    values = np.random.default_rng(count).permutation(count).astype(float)
    expected = by_workload.spread(pl.Series(values))[name]
    assert percentile(values, share) == expected
    assert percentile(np.append(values, np.nan), share) == expected


def test_no_values_have_no_percentile() -> None:
    assert percentile(np.array([np.nan]), 0.5) is None
