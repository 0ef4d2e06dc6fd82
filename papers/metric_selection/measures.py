"""Measures the place of one metric among the metrics that tell most about a target."""

from __future__ import annotations

import fnmatch

from eastwest.claims.measures import Data, Measured, Row, Settings, measure
from eastwest.stats import mean_interval


@measure("selected-place")
def selected_place(
    data: Data,
    at: Settings,
    target: str,
    of: str,
    count: int,
    exclude: list[str],
    scheme: str = "difference",
) -> Measured:
    """Return the place, from 1, of the first selected metric that fits the glob ``of``.

    The value is the mean over runs. If none of the ``count`` selected metrics matches, the place is
    ``count`` + 1.
    """
    from eastwest.observe.mrmr import Scheme  # noqa: PLC0415  numpy is slow to load
    from eastwest.observe.run_metrics import metrics  # noqa: PLC0415
    from eastwest.observe.select import Wanted, select  # noqa: PLC0415

    wanted = Wanted(count=count, exclude=tuple(exclude), scheme=Scheme(scheme))
    places: list[float] = []
    rows: list[Row] = []
    for _, seed, result in data.results(at):
        chosen = select(metrics(result), target, wanted).chosen
        fitting = [fnmatch.fnmatchcase(each.metric, of) for each in chosen]
        places.append(fitting.index(True) + 1 if True in fitting else len(chosen) + 1)
        rows += [
            {"seed": seed, "place": n, "metric": c.metric, "relevance_nats": c.relevance,
             "redundancy_nats": c.redundancy, "score": c.score}
            for n, c in enumerate(chosen, 1)
        ]  # fmt: skip
    interval = mean_interval(places)
    return Measured(interval.value, interval.low, interval.high, interval.n, rows=rows)
