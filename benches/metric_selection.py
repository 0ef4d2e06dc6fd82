"""Measures the time to select 20 of 1,000 metrics over 10,000 rows."""

from __future__ import annotations

import time

import numpy as np

from eastwest.observe.metrics import Metrics
from eastwest.observe.select import Method, Wanted, select

ROWS, METRICS, CAUSES = 10_000, 1000, 40


def table() -> Metrics:
    """Return metrics that depend on forty random causes, and a target that depends on ten."""
    random = np.random.default_rng(1)
    causes = random.normal(size=(ROWS, CAUSES))
    target = causes[:, :10].sum(axis=1) + random.normal(size=ROWS)
    columns = [
        causes[:, number % CAUSES] + (0.5 + number / METRICS) * random.normal(size=ROWS)
        for number in range(METRICS)
    ]
    names = ("target", *(f"m{number}" for number in range(METRICS)))
    return Metrics(names, np.column_stack((target, *columns)))


if __name__ == "__main__":
    metrics = table()
    for method in Method:
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        select(metrics, "target", Wanted(count=20, method=method))
        took = time.process_time() - cpu_s, time.perf_counter() - wall_s
        print(f"{method}: {took[0]:.1f} s of CPU time, {took[1]:.1f} s")
