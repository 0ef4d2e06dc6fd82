"""Tables of a result, cleaned so that they can be drawn, with host names and bins of time."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from eastwest import by_workload
from eastwest.formats import SINCE
from eastwest.results import Result, pick
from eastwest.sweep.metrics import STARTS
from eastwest.views.labels import natural, shown
from eastwest.views.series import Bins

#: Maximum absolute value of numbers in tables; larger values are set to it. Times and shares of
#: real runs are far below.
_MOST = 1e15
#: Columns that results in older formats do not have; they are null when an older result is read.
_MAY_BE_MISSING = {later.partition(".")[2] for later in SINCE}


class Drawable(Result):
    """Result whose tables contain only values that can be drawn, even if its files are damaged.

    Rows with a missing or invalid number are left out and counted, but incomplete flows remain.
    A missing text becomes a question mark; a number above 1e15 becomes 1e15.
    """

    def __init__(self, path: Path, warm_up_s: float = 0.0) -> None:
        super().__init__(path)
        #: End of the warm-up in simulated s: flows, jobs and other units that start before it are
        #: left out.
        self.warm_up_s = warm_up_s
        #: Number of rows with invalid numbers that were left out, by table.
        self.left_out: dict[str, int] = {}

    def table(self, name: str) -> pl.DataFrame:
        """Return the table ``name`` without rows that start in the warm-up."""
        table = self.whole(name)
        if self.warm_up_s and name in STARTS:
            return table.filter(pl.col(STARTS[name]) >= self.warm_up_s)
        return table

    def whole(self, name: str) -> pl.DataFrame:
        """Return the table ``name``, including rows that start in the warm-up."""
        table = super().table(name)
        real = [c for c, kind in table.schema.items() if kind.is_float()]
        wanted = [c for c in real if name != "flows" or c == "start_s"]
        whole = [
            c for c, kind in table.schema.items() if kind.is_integer() and c not in _MAY_BE_MISSING
        ]
        good = table.with_columns(
            pl.col(real).cast(pl.Float64).clip(-_MOST, _MOST),
            pl.col(pl.String).fill_null("?"),
        ).filter(
            pl.all_horizontal(
                *(pl.col(c).is_not_nan().fill_null(c in _MAY_BE_MISSING) for c in wanted),
                *(pl.col(c).is_not_null() for c in whole),
                pl.lit(value=True),
            )
        )
        if name == "flows":
            # The three columns of a flow's completion are all valid (complete flow) or all set to
            # NaN.
            done = pl.all_horizontal(pl.col("fct_us", "finish_s", "slowdown").is_finite())
            good = good.with_columns(
                pl.when(done).then(pl.col(c)).otherwise(float("nan")).alias(c)
                for c in ("fct_us", "finish_s", "slowdown")
            )
        if good.height < table.height:
            self.left_out[name] = table.height - good.height
        return good


class Facts:
    """A result with values derived from its tables, without rows that start in the warm-up."""

    def __init__(self, result: Result, warm_up_s: float = 0.0) -> None:
        self.result = Drawable(result.path, warm_up_s)
        self.links = self.result.links
        self.flows = self.result.flows
        self.jobs = self.result.jobs
        self.tasks = self.result.tasks

    @cached_property
    def events(self) -> pl.DataFrame:
        """The table ``events`` of the result: events of connections, in order of time."""
        return self.result.table("events")

    @cached_property
    def units(self) -> dict[str, pl.DataFrame]:
        """Table of units of work by kind, such as exchanges (:func:`eastwest.by_workload.units`).

        A row is a unit of work; units that start in the warm-up are left out.
        """
        tables = {name: self.result.whole(name).lazy() for name in by_workload.TABLES}
        start = pl.col("start_s") >= self.result.warm_up_s
        return {name: rows.filter(start) for name, rows in by_workload.units(tables).items()}

    @cached_property
    def samples(self) -> pl.DataFrame:
        """The table ``link_samples``: bytes, drops and marks of each link over time."""
        return self.result.table("link_samples")

    @cached_property
    def end(self) -> float:
        """End of the run in seconds of simulated time: the right end of all time axes."""
        ends = [min(pick(self.result.summary, "simulated_s") or 0.0, _MOST)]
        for table, column in (
            (self.tasks, "finished_s"),
            (self.result.traffic, "time_s"),
            (self.flows, "finish_s"),
        ):
            times = table[column].drop_nulls().drop_nans()
            if times.len():
                ends.append(float(times.max()))  # type: ignore[arg-type]
        finite = [end for end in ends if np.isfinite(end)]
        return max([*finite, 1e-9])

    @cached_property
    def hosts(self) -> list[str]:
        """Names of hosts: the index is the number of the host."""
        tier = self.links.filter(pl.col("tier") == "host-up").sort("link")
        names = tier["src"].unique(maintain_order=True).to_list()
        plain = {f"h{number}" for number in range(len(names))}
        return sorted(names, key=natural) if set(names) == plain else names

    def host(self, number: int) -> str:
        """Return the name of the host with this number."""
        return shown(self.hosts[number]) if 0 <= number < len(self.hosts) else f"host {number}"

    @cached_property
    def interval(self) -> float:
        """Sampling interval of ``traffic`` and ``link_samples`` in s; 0 if both are empty."""
        for table in (self.result.traffic, self.samples):
            times = np.unique(table["time_s"].drop_nulls().to_numpy())
            if times.size > 1:
                return float(np.diff(times).min())
            if times.size:
                return float(times[0])
        return 0.0

    def bins(self, most: int) -> Bins:
        """Return at most ``most`` equal bins of the run; a bin has whole sampling intervals."""
        if self.interval <= 0 or not np.isfinite(self.interval):
            return Bins(self.end / most, most)
        intervals = max(1, int(np.ceil(min(self.end / self.interval - 1e-6, 1e12))))
        group = -(-intervals // most)
        return Bins(self.interval * group, -(-intervals // group))

    @cached_property
    def link_names(self) -> dict[int, str]:
        """Names of links by number."""
        numbers, names = self.links["link"].to_list(), self.links["name"].to_list()
        return {number: shown(name) for number, name in zip(numbers, names, strict=True)}

    def link(self, number: int) -> str:
        """Return the name of the link with this number."""
        return self.link_names.get(number, f"link {number}")

    @cached_property
    def tiers(self) -> list[str]:
        """Names of the tiers of links, in the order of the table ``links``."""
        return [str(t) for t in self.links["tier"].unique(maintain_order=True).to_list()]

    @cached_property
    def drops_sampled(self) -> pl.DataFrame:
        """Packets dropped over time, by link: ``time_s``, ``link``, ``packets``, ``tier``.

        A row is a sampling interval of a link; without samples, a row is a dropped packet.
        """
        if self.samples.height:
            return self._sampled("drops")
        events = self.events.filter(pl.col("what") == "drop")
        return self._with_tier(
            events.select("time_s", pl.col("link").cast(pl.UInt32, strict=False), packets=pl.lit(1))
        )

    @cached_property
    def marks_sampled(self) -> pl.DataFrame:
        """Packets marked (ECN) over time, by link: ``time_s``, ``link``, ``packets``, ``tier``.

        A row is a sampling interval of a link. Results before format 9 have no rows.
        """
        return self._sampled("marks")

    def _sampled(self, column: str) -> pl.DataFrame:
        """Return the rows of ``link_samples`` with a count above 0 in ``column``.

        The columns are ``time_s``, ``link``, ``packets`` (the count) and ``tier`` of the link.
        """
        some = self.samples.filter(pl.col(column) > 0)
        return self._with_tier(some.select("time_s", "link", packets=pl.col(column)))

    def _with_tier(self, packets: pl.DataFrame) -> pl.DataFrame:
        tiers = self.links.select("link", "tier")
        joined = packets.join(tiers, on="link", how="left")
        return joined.with_columns(pl.col("tier").fill_null("?"))
