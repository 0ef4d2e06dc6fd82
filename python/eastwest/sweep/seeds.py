"""Notes for the user about too few seeds, or about seeds that do not change the results.

An interval over seeds shows how much chance changes a result. With one seed, there is no interval.
If a run has no random elements, all seeds have equal results, and an interval of width 0 is
misleading. With few seeds, an event that occurs in few runs may be absent, and all intervals are
too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eastwest.sweep import words
from eastwest.units import count, percent
from eastwest.views.labels import plural

if TYPE_CHECKING:
    from eastwest.sweep.tables import SweepResult

#: Standard deviation over seeds, as a share of the mean, below which a metric hardly varies.
_HARDLY = 0.001
_WHY = (
    "the intervals do not show the effect of another random load; seeds change results only "
    "through fabric.processing_jitter, start_jitter, start_window and random workloads"
)
#: Number of seeds from which an event that one run in ten has is likely to be among them (96 %).
_WITH_RARE = 30
#: Maximum number of main metrics that a note names.
_MOST_NAMED = 4


def of_sweep(sweep: SweepResult) -> list[str]:
    """Return notes on the seeds of a sweep; empty if results vary with the seed."""
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
        return _of_rule(sweep)
    most = max(steady.values())
    where = ""
    if len(steady) < several.height:
        where = f" at {count(len(steady))} of {plural(several.height, 'point')}"
    what = f"do not change these results{where} ({_named(sweep)})"
    if most > 0:
        what = (
            f"hardly change these results{where} (standard deviation below {percent(_HARDLY)} of "
            f"the mean: {_named(sweep)})"
        )
    return [f"seeds {what}: {_WHY}"]


def _of_rule(sweep: SweepResult) -> list[str]:
    """Return a note if a rule that adds seeds has stopped points with few seeds; else nothing."""
    rule = sweep.summary.get("adaptive")
    if not isinstance(rule, Mapping):
        return []
    few = sum(n < _WITH_RARE for n in sweep.runs["point"].value_counts()["count"])
    if not few:
        return []
    level = f"each interval has {percent(rule['level'])} confidence; " if "level" in rule else ""
    return [
        f"{level}{plural(few, 'point')} stopped with fewer than {_WITH_RARE} seeds: if one run in "
        "ten differs much from the others, such a point may have no such run, and its interval is "
        f"too narrow; at_least = {_WITH_RARE} in [seeds] makes this unlikely"
    ]


def _main(sweep: SweepResult) -> list[str]:
    """Return the paths of a sweep's main metrics that have several seeds and a mean other than 0.

    Main metrics are those of ``show``, of workloads, and ``HEADLINES``; the condition must hold at
    one point at least.
    """
    import polars as pl  # noqa: PLC0415  large

    rows = sweep.points.filter((pl.col("n") > 1) & (pl.col("mean") != 0))
    there = set(rows["metric"].unique())
    main = [words.full(name, there) for name in sweep.summary.get("show") or []]
    main += [*words.of_workloads(there), *(each[0] for each in words.HEADLINES)]
    return [name for name in dict.fromkeys(main) if name in there]


def _named(sweep: SweepResult) -> str:
    """Return the short names of a sweep's first four main metrics, and the number of the others."""
    names = [words.shown(name)[1] for name in _main(sweep)]
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _steady(sweep: SweepResult) -> dict[int, float]:
    """Return the points at which seeds hardly change the results: largest variation by point.

    The variation of a metric is its standard deviation over the seeds as a share of its mean. A
    point is returned if the variation of all main metrics is below 0.1 %.
    """
    import polars as pl  # noqa: PLC0415  large

    rows = sweep.points.filter((pl.col("n") > 1) & (pl.col("mean") != 0))
    varied = rows.filter(pl.col("metric").is_in(_main(sweep))).with_columns(
        share=pl.col("sd") / pl.col("mean").abs()
    )
    largest = varied.group_by("point").agg(pl.col("share").max()).sort("point")
    return {point: share for point, share in largest.rows() if share < _HARDLY}


def of_optimisation(summary: Mapping[str, Any]) -> list[str]:
    """Return notes on the seeds of an optimisation's last stage, which decides on the finalists."""
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
            f"seeds hardly change the goals of the finalists (half the interval is below "
            f"{percent(_HARDLY)} of the mean): {_WHY}"
        ]
    return []


def of_results(settings: Sequence[Mapping[str, str]], digests: Sequence[str]) -> str | None:
    """Return a note if every result has other settings, so that the effect of chance is unknown.

    ``settings`` has the settings of each result by path, with the seed; ``digests`` has the digest
    of each result. Returns None if two results have equal settings (apart from seed and name), or
    if all digests are equal.
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
