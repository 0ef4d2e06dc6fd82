"""Estimates of the time and memory of a sweep before it starts.

The estimate for a sweep comes from the run store's records of the points of the sweep. Without
records, it comes from a probe: runs of the first, middle and last point, which count as runs of the
sweep. If a probe run has not finished after 4 s, its time is extrapolated from the share of the run
that is done.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from eastwest.memory import available_bytes
from eastwest.store import Plan, Store
from eastwest.sweep.pool import Pool
from eastwest.sweep.worker import Event, Task
from eastwest.units import count, plural, size, span

#: Time in s that a run needs besides its simulation: to store the result and to send messages.
OVERHEAD_S = 0.02
#: Memory of the main process of a sweep, in MB.
PARENT_MB = 120.0

_PROBE_S = 4.0


@dataclass(frozen=True)
class Estimate:
    """Number of runs of a sweep, and estimated time and memory of the runs that are simulated."""

    runs: int
    #: Number of ``runs`` that the run store has already; they are not simulated again.
    reused: int
    jobs: int
    #: Sum of the wall times of the runs that are simulated, in s; None if unknown.
    work_s: float | None
    #: Wall time of the whole sweep with ``jobs`` processes, in s; None if unknown.
    wall_s: float | None
    #: Memory of all processes together, in MB; None if unknown.
    memory_mb: float | None
    #: Source of the estimate as text, such as ``from 12 earlier runs of 4 of its points``.
    basis: str
    #: Whether ``runs`` is a minimum, because an adaptive rule may request more runs.
    at_least: bool = False

    def sentence(self) -> str:
        """Return the estimate as text: number of runs, time and memory; warn if memory is short."""
        more = " or more" if self.at_least else ""
        parts = [f"{plural(self.runs, 'run')}{more}"]
        if self.reused:
            parts.append(f"{count(self.reused)} of them in the store")
        if self.runs > self.reused:
            parts.append(
                f"about {span(self.wall_s)} on {self.jobs} process{'es' * (self.jobs > 1)}"
                if self.wall_s is not None
                else f"time unknown: {self.basis}"
            )
            if self.memory_mb is not None:
                free = available_mb() or math.inf
                short = self.memory_mb > free
                warning = f", more than the {size(free * 1e6)} that are free" if short else ""
                parts.append(f"{size(self.memory_mb * 1e6)} of memory{warning}")
            if self.wall_s is not None:
                parts.append(f"({self.basis})")
        return ", ".join(parts).replace(", (", " (")

    def as_json(self) -> dict[str, object]:
        """Return the estimate as a JSON object."""
        return {
            "runs": self.runs,
            "reused": self.reused,
            "jobs": self.jobs,
            "work_s": self.work_s,
            "wall_s": self.wall_s,
            "memory_mb": self.memory_mb,
            "basis": self.basis,
            "at_least": self.at_least,
        }


def available_mb() -> float | None:
    """Return the memory that is available without swapping, in MB; None where it is unknown."""
    available = available_bytes()
    return None if available is None else available / 1e6


class Knowledge:
    """Known wall times of runs by point, and peak memory; finished runs of a sweep are added."""

    def __init__(self) -> None:
        self._walls: dict[str, list[float]] = {}
        self._peaks: list[float] = []

    def learn(self, identity: str, wall_s: float, peak_mb: float | None = None) -> None:
        """Add the wall time in s and the peak memory in MB of one run.

        ``identity`` is the hash of the resolved scenario, equal for all seeds of a point.
        """
        self._walls.setdefault(identity, []).append(wall_s)
        if peak_mb is not None:
            self._peaks.append(peak_mb)

    @property
    def points(self) -> int:
        """Number of points with known wall times."""
        return len(self._walls)

    @property
    def runs(self) -> int:
        """Number of runs with known wall times."""
        return sum(len(walls) for walls in self._walls.values())

    def peak_mb(self) -> float | None:
        """Return the largest peak memory of the known runs, in MB."""
        return max(self._peaks, default=None)

    def typical_s(self) -> float | None:
        """Return the mean over the points of their mean wall time in s; None without known runs."""
        means = [statistics.fmean(walls) for walls in self._walls.values()]
        return statistics.fmean(means) if means else None

    def run_s(self, identity: str) -> float | None:
        """Return the expected wall time of a run of the point ``identity``, in s.

        This is the mean over the known runs of the point, or else over all points; None if no run
        is known.
        """
        walls = self._walls.get(identity)
        return statistics.fmean(walls) if walls else self.typical_s()


class Outlook:
    """Estimator of the time and memory of one sweep."""

    def __init__(self, store: Store, family: str, pool: Pool) -> None:
        self._store = store
        self._family = family
        self._pool = pool
        self._basis = ""
        self.knowledge = Knowledge()
        #: Keys (in the store) of the runs that the probe has executed.
        self.probed: set[str] = set()

    def learn(self, points: Sequence[Plan], missing: Sequence[Plan], seed: int) -> None:
        """Read the stored run times of ``points``; without any, run a probe.

        The probe runs up to three points of ``missing``, the points that have runs to simulate,
        with seed ``seed``.
        """
        identities = {plan.identity for plan in points}
        for cost in self._store.costs(self._family):
            if cost["identity"] in identities:
                self.knowledge.learn(cost["identity"], cost["wall_s"], cost["peak_rss_mb"])
        known = self.knowledge
        if known.runs:
            self._basis = f"from {known.runs:,} earlier runs of {known.points:,} of its points"
        elif missing:
            chosen = sorted({0, len(missing) // 2, len(missing) - 1})
            self._probe([missing[place] for place in chosen], seed)

    def estimate(self, runs: int, reused: int, work_s: float, at_least: bool) -> Estimate:
        """Return the estimate of ``runs`` runs, of which ``reused`` are in the store.

        ``work_s`` is the sum of the wall times of the other runs, in s; with ``at_least``, ``runs``
        is a minimum.
        """
        missing = runs - reused
        known = self.knowledge.runs > 0 or missing == 0
        busy = max(1, min(self._pool.size, missing))
        peak = self.knowledge.peak_mb()
        return Estimate(
            runs=runs,
            reused=reused,
            jobs=self._pool.size,
            work_s=work_s if known else None,
            wall_s=(work_s + missing * OVERHEAD_S) / busy if known else None,
            # The runs of a cluster do not use the memory of this machine.
            memory_mb=None if peak is None or self._pool.remote else PARENT_MB + peak * busy,
            basis=self._basis or "no earlier run is known",
            at_least=at_least,
        )

    def _probe(self, points: Sequence[Plan], seed: int) -> None:
        """Run ``points`` with one seed for at most 4 s, and learn their wall times.

        Runs that finish are stored as runs of the sweep. The others are stopped, and their times
        are extrapolated.
        """
        waiting = {
            n: Task(n, p.overrides, p.identity, seed, stop=p.stop) for n, p in enumerate(points)
        }
        shares: dict[int, Event] = {}
        for task in waiting.values():
            self._pool.submit(task)
        until = time.monotonic() + _PROBE_S
        while waiting and time.monotonic() < until:
            for event in self._pool.events(until - time.monotonic()):
                if event.what == "progress":
                    shares[event.number] = event
                elif event.what == "world":
                    self._pool.stop()  # later events of the probe must not reach the sweep
                    return  # the sweep will have the same error, and report it
                else:
                    waiting.pop(event.number, None)
        if waiting:
            self._pool.stop()
        for number in waiting:
            if number in shares and shares[number].share > 0:
                event = shares[number]
                self.knowledge.learn(points[number].identity, event.wall_s / event.share)
        self._learn_probed(points, seed)
        over = len(points) - len(waiting)
        self._basis = f"from a probe of {len(points)} of its points, {over} of them finished"
        if not self.knowledge.runs:
            took = max((event.wall_s for event in shares.values()), default=0.0)
            stopped = (
                f"the probe was stopped after {span(_PROBE_S)}: a run takes more than {span(took)}"
                if took
                else f"no process of the probe began a run within {span(_PROBE_S)}; "
                "this says nothing about the time of a run"
            )
            self._basis = stopped if waiting else "the runs of the probe failed"

    def _learn_probed(self, points: Sequence[Plan], seed: int) -> None:
        """Learn the costs of the runs of ``points`` with ``seed`` that the probe has finished."""
        self.probed = {key for plan in points for key in plan.keys(seed)}
        for plan in points:
            for found in filter(None, map(self._store.find, plan.keys(seed))):
                summary = found.summary
                self.knowledge.learn(plan.identity, summary["wall_s"], summary["peak_rss_mb"])
