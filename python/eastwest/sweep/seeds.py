"""Notes on seeds of sweeps, optimisations and comparisons: one for all, or without effect.

An interval over seeds shows how much chance moves a result. There is none with one seed, and it
misleads where seeds change nothing: a run without random elements is equal for every seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eastwest.sweep import words
from eastwest.units import count, percent
from eastwest.views.labels import plural

if TYPE_CHECKING:
    from eastwest.sweep.tables import SweepResult

#: Standard deviation over seeds, as a share of the mean, below which seeds hardly vary a metric.
_HARDLY = 0.001
_WHY = (
    "so that intervals over the seeds do not show chance; seeds act through "
    "fabric.processing_jitter, start_jitter, start_window and random workloads"
)


def of_sweep(sweep: SweepResult) -> list[str]:
    """Return notes on the seeds of a sweep: none where seeds vary its runs."""
    import polars as pl  # noqa: PLC0415  large

    runs = sweep.runs
    if runs.height == 0:
        return []
    several = runs.group_by("point").agg(n=pl.col("seed").n_unique()).filter(pl.col("n") > 1)
    if several.height == 0:
        numbers = runs["seed"].unique().to_list()
        which = f"seed {numbers[0]}" if len(numbers) == 1 else "one seed"
        return [
            f"each point has one run ({which}): no value has an interval, and differences between "
            "points can be chance; eastwest sweep FILE --seeds 10 --resume adds seeds"
        ]
    steady = _steady(sweep)
    if not steady:
        return []
    most = max(steady.values())
    how = "do not change the main metrics"
    if most > 0:
        how = (
            f"change the main metrics by less than {percent(_HARDLY)} (standard deviation, at most "
            f"{percent(most)} of the mean)"
        )
    return [f"at {count(len(steady))} of {plural(several.height, 'point')} seeds {how}, {_WHY}"]


def _steady(sweep: SweepResult) -> dict[int, float]:
    """Return the points at which seeds hardly vary any main metric, with the largest variation.

    The variation is the standard deviation as a share of the mean.
    """
    import polars as pl  # noqa: PLC0415  large

    rows = sweep.points.filter(pl.col("n") > 1)
    there = set(rows["metric"].unique())
    main = [*(each[0] for each in words.HEADLINES), *words.of_workloads(there)]
    main += [words.full(name, there) for name in sweep.summary.get("show") or []]
    varied = rows.filter(pl.col("metric").is_in(main) & (pl.col("mean") != 0)).with_columns(
        share=pl.col("sd") / pl.col("mean").abs()
    )
    largest = varied.group_by("point").agg(pl.col("share").max()).sort("point")
    return {point: share for point, share in largest.rows() if share < _HARDLY}


def of_optimisation(summary: Mapping[str, Any]) -> list[str]:
    """Return notes on the seeds of an optimisation's last stage, which judges the finalists."""
    last = summary["stages"][-1] if summary.get("stages") else None
    if last is None or not summary.get("finalists"):
        return []
    if len(last["seeds"]) == 1:
        return [
            f"the last stage has one run of each point (seed {last['seeds'][0]}): no value has an "
            "interval, and the recommendation can be chance; seeds = 10 in the last stage adds "
            "seeds"
        ]
    shares = [
        (value["high"] - value["low"]) / 2 / abs(value["mean"])
        for point in summary["finalists"]
        for value in (goal["value"] for goal in point["goals"])
        if value["mean"] and value["low"] is not None and value["high"] is not None
    ]
    if shares and max(shares) < _HARDLY:
        return [
            f"seeds change the goals of all finalists by less than {percent(_HARDLY)} (half the "
            f"interval, at most {percent(max(shares))} of the mean), {_WHY}"
        ]
    return []


def of_results(settings: Sequence[Mapping[str, str]], digests: Sequence[str]) -> str | None:
    """Return a note where each of several results is the only one with its settings.

    ``settings`` are those of each result by path, with its seed.
    """
    alike = [
        tuple((k, v) for k, v in each.items() if k not in {"seed", "name"}) for each in settings
    ]
    if len(set(digests)) < 2 or len(set(alike)) < len(alike):
        return None
    seeds = sorted({each.get("seed", "?") for each in settings})
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(seeds[:6])}"
    return (
        f"each setting has one run ({which}), so that differences can be chance; a sweep over "
        "several seeds gives intervals"
    )
