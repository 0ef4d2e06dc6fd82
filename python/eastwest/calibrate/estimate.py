"""Rates and fixed delays of a cluster, estimated from its job histories.

Every phase of a job has one cost in the model. The estimate is the median of the observed costs;
only for the start of a task it is the least observed time. So one slow task, or one history with
another load on the cluster, has little influence. Residuals show the error: the relative difference
of observed phases from the estimate, median and worst.

=================  ============================================================================
``task_start``     shortest time from the start of a reduce to the end of its shuffle, minus (if the
                   rate of the node's link is known) the time of the reduce's bytes from other nodes
                   on this link. This time is the start of a container and virtual machine before
                   the first byte; losses and slow starts of the network lengthen it. Where the
                   time of the first bytes on a link was recorded (``first_percents_s``), the start
                   follows from this time instead
``disk_rate``      bytes that a reduce shuffled, divided by the time of its merge
``map_rate``       bytes that a map read, divided by its time without start and spill
``reduce_rate``    bytes that a reduce shuffled, divided by its time after the merge without writing
                   the last piece of the output, at most 16 MiB, at ``disk_rate``: the model writes
                   the earlier pieces while the function runs
``job_setup``      from submission to the first map, minus half a heartbeat
``job_cleanup``    from the end of the last task to the end of the job
=================  ============================================================================

If tasks share cores, the rates are valid only for the load of the histories. The module
``containers`` has the estimates for clusters on YARN, in core time, which are valid for any load.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from eastwest.calibrate import containers
from eastwest.calibrate.containers import Containers, Cores
from eastwest.calibrate.jhist import Attempt, History
from eastwest.errors import InputError

#: Share of payload in the bits of a link: 1,448 of the 1,514 bytes of a full Ethernet frame.
_PAYLOAD = 1448 / 1514
#: Shortest accepted phase in s: Hadoop's times have a resolution of a millisecond.
_LEAST_S = 0.001
#: Largest piece of output, in bytes, that the model writes after the reduce function has made it.
_PIECE_BYTES = 16 << 20


@dataclass(frozen=True)
class Estimate:
    """Estimate of one parameter: ``value`` in seconds, or in bytes per second for a rate."""

    key: str
    meaning: str
    value: float
    samples: int
    #: Median of the absolute residuals. A residual is the observed time of a phase, divided by the
    #: estimated time, minus 1.
    residual_median: float
    #: Residual with the largest magnitude, with its sign.
    residual_worst: float

    @property
    def is_rate(self) -> bool:
        """Whether the value is in bytes per second."""
        return self.key.endswith("_rate")


@dataclass(frozen=True)
class Observation:
    """Median, minimum and maximum of a quantity that histories have and the model does not need."""

    meaning: str
    unit: str  # s, or s/MB
    median: float
    least: float
    most: float
    samples: int


@dataclass(frozen=True)
class JobResidual:
    """Runtime of a job in s: observed, and estimated from the costs of the profile."""

    history: History
    observed_s: float
    estimated_s: float

    @property
    def residual(self) -> float:
        """Relative error of the runtime: estimated over observed, minus 1."""
        return self.estimated_s / self.observed_s - 1


@dataclass(frozen=True)
class Calibration:
    """Result of a calibration: estimates of parameters, observations, runtimes and warnings."""

    histories: list[History]
    estimates: list[Estimate]
    observations: list[Observation]
    jobs: list[JobResidual]
    warnings: list[str]

    def value(self, key: str) -> float:
        """Return the estimate of a parameter such as ``costs.map_rate``, in s or bytes per s.

        Raises ``KeyError`` if the histories give no estimate.
        """
        for estimate in self.estimates:
            if estimate.key == key:
                return estimate.value
        raise KeyError(key)


def estimate(
    histories: Sequence[History],
    link_rates_bps: Sequence[float | None] = (),
    heartbeat_s: float = 1.0,
    cluster: Containers | None = None,
    first_percents_s: Sequence[float | None] = (),
) -> Calibration:
    """Return the parameters of a machine, estimated from histories of jobs that succeeded.

    ``link_rates_bps`` has the rate of a node's link in each history, None where it is unknown.
    ``heartbeat_s`` is the time between two heartbeats of a node. With a ``cluster`` the estimates
    are for a workload on YARN, without it for slots (Hadoop 1). ``first_percents_s`` has, for each
    history, the time in s from the start of the first reduce until 1 % of the bytes to some node
    had passed on its link; None without a recorded network. Raises ``InputError`` if a job failed.
    """
    if not histories:
        raise InputError("no job history is given; at least one is needed")
    for history in histories:
        if history.status != "SUCCEEDED":
            raise InputError(
                f"{history.path}: the job ended with the status {history.status}; only jobs with "
                "the status SUCCEEDED are allowed"
            )
        if not history.of("map"):
            raise InputError(
                f"{history.path}: no map task of the job has succeeded; at least one is needed"
            )
    rates = list(link_rates_bps) or [None] * len(histories)
    if len(rates) != len(histories):
        raise InputError(
            f"{len(rates)} link rates are given for {len(histories)} histories: give one rate, or "
            "None, for each history, or no rates"
        )
    firsts = list(first_percents_s) or [None] * len(histories)
    if len(firsts) != len(histories):
        raise InputError(
            f"{len(firsts)} times of first bytes are given for {len(histories)} histories: give "
            "one time, or None, for each history, or no times"
        )
    trusted = [_without_skew(history) for history in histories]
    maps = [a for attempts in trusted for a in attempts if a.kind == "map"]
    reduces = [a for attempts in trusted for a in attempts if a.kind == "reduce"]
    found = _Estimates()
    start = _seen_start(trusted, rates, firsts) or _task_start(trusted, rates, maps)
    if cluster is not None:
        return _on_yarn(histories, trusted, start, heartbeat_s, cluster)
    if start is not None:
        found.add("costs.task_start", "container and JVM start", *start)
    disk = _rate(reduces, _shuffled, lambda a: _between(a.input_done_s, a.sorted_s))
    found.rate("costs.disk_rate", "merge of a reduce", disk)
    start_s = start[0] if start else 0.0
    disk_bps = disk[0] if disk else None

    def map_time(a: Attempt) -> float | None:
        return _less(_whole(a), start_s, _at(_spilled(a), disk_bps))

    def reduce_time(a: Attempt) -> float | None:
        last_piece = min(_written(a), _PIECE_BYTES)
        return _less(_between(a.sorted_s, a.finished_s), _at(last_piece, disk_bps))

    found.rate("costs.map_rate", "map with sort", _rate(maps, _read, map_time))
    found.rate("costs.reduce_rate", "reduce function", _rate(reduces, _shuffled, reduce_time))
    first_maps = [min(a.started_s or 0.0 for a in h.of("map")) for h in histories]
    found.delay("control.job_setup", "submission to first map", first_maps, less=heartbeat_s / 2)
    ends = [_between(_last_end(h), h.finished_s) for h in histories]
    found.delay("control.job_cleanup", "last task to end of job", _known(ends))
    observations = _observe(histories, maps, reduces)
    calibration = Calibration(list(histories), found.list, observations, [], _warnings(histories))
    calibration.jobs.extend(_job_residual(calibration, h, heartbeat_s) for h in histories)
    return calibration


def _on_yarn(
    histories: Sequence[History],
    trusted: Sequence[Sequence[Attempt]],
    start: tuple[float, list[float], int] | None,
    heartbeat_s: float,
    cluster: Containers,
) -> Calibration:
    """Return the estimates for a workload on YARN, in core time (see module ``containers``).

    ``trusted`` has the usable attempts of each history; ``start`` is (duration of a task's start in
    s, residuals, number of histories).
    """
    found = _Estimates()
    wall_s = start[0] if start else 0.0
    machines = [Cores(history, cluster, wall_s) for history in histories]
    start_s = 0.0
    if start is not None:
        begins = [
            machine.time(a.host, a.started_s + containers.CONTAINER_LAUNCH_S, a.started_s + wall_s)
            for attempts, machine in zip(trusted, machines, strict=True)
            for a in attempts
            if a.kind == "reduce" and a.started_s is not None
        ]
        known = _known(begins)
        # Without reduce tasks, the start is estimated from the shortest map, in wall time.
        start_s = statistics.median(known) if known else wall_s
    widths = containers.jitters(trusted, machines)
    jitter_s = min(statistics.median(widths), 2 * start_s) if widths else 0.0
    if start is not None:
        counts = [sum(a.kind == "reduce" for a in attempts) for attempts in trusted]
        start_s = max(0.0, start_s - jitter_s / (1 + max(1.0, statistics.median(counts))))
        found.add("costs.task_start", "start of a virtual machine", start_s, *start[1:])
        apart = [width / jitter_s - 1 for width in widths if jitter_s > 0]
        found.add("costs.task_start_jitter", "spread of the starts", jitter_s, apart, len(widths))
    for key, meaning, pairs in containers.phases(trusted, machines, start_s + jitter_s / 2):
        found.rate(key, meaning, containers.median_rate(pairs))
    observed = containers.delays(histories, heartbeat_s)
    found.delay("yarn.am_start", "application master's start", observed["yarn.am_start"])
    setups = observed["control.job_setup"]
    found.delay("control.job_setup", "submission to its master", setups)
    ends = [_between(_last_end(h), h.finished_s) for h in histories]
    found.delay("control.job_cleanup", "last task to end of job", _known(ends))
    maps = [a for attempts in trusted for a in attempts if a.kind == "map"]
    reduces = [a for attempts in trusted for a in attempts if a.kind == "reduce"]
    calibration = Calibration(
        list(histories), found.list, _observe(histories, maps, reduces), [], _warnings(histories)
    )
    values = {e.key: e.value for e in found.list}
    calibration.jobs.extend(
        JobResidual(h, h.finished_s, _job_on_yarn(values, h, machine))
        for h, machine in zip(histories, machines, strict=True)
    )
    return calibration


def _job_on_yarn(values: dict[str, float], history: History, machine: Cores) -> float:
    """Return the runtime of a job in s that the estimates ``values`` (by key) give.

    Estimated core times are multiplied by the observed slow-down by shared cores.
    """
    launch = containers.CONTAINER_LAUNCH_S
    ends = []
    for a in history.of("map"):
        core = values.get("costs.task_start", 0.0) + values.get("costs.task_start_jitter", 0.0) / 2
        core += _at(_read(a), values.get("costs.map_rate"))
        core += _at(_spilled(a), values.get("costs.sort_rate"))
        ends.append((a.started_s or 0.0) + launch + core * containers.stretch(a, machine))
    last_map = max(_known(a.finished_s for a in history.of("map")))
    shift = max(ends) - last_map
    for a in history.of("reduce"):
        core = _at(_shuffled(a), values.get("costs.merge_rate"))
        core += _at(_shuffled(a), values.get("costs.reduce_rate"))
        after = machine.time(a.host, a.input_done_s, a.finished_s)
        wall = _between(a.input_done_s, a.finished_s)
        slower = wall / after if wall and after else 1.0
        done = (a.input_done_s or 0.0) + core * slower + containers.TASK_COMMIT_S
        ends.append(done + (shift if _gap(history) is not None else 0.0))
    return max(ends) + values.get("control.job_cleanup", 0.0)


class _Estimates:
    def __init__(self) -> None:
        self.list: list[Estimate] = []

    def add(
        self, key: str, meaning: str, value: float, residuals: Sequence[float], samples: int
    ) -> None:
        sizes = [abs(r) for r in residuals] or [0.0]
        worst = max(residuals, key=abs, default=0.0)
        self.list.append(Estimate(key, meaning, value, samples, statistics.median(sizes), worst))

    def rate(self, key: str, meaning: str, found: tuple[float, list[float]] | None) -> None:
        if found is not None:
            self.add(key, meaning, found[0], found[1], len(found[1]))

    def delay(self, key: str, meaning: str, observed: Sequence[float], less: float = 0.0) -> None:
        if observed:
            middle = statistics.median(observed)
            residuals = [o / middle - 1 for o in observed if middle > 0]
            self.add(key, meaning, max(0.0, middle - less), residuals, len(observed))


def _without_skew(history: History) -> list[Attempt]:
    """Return the successful attempts on hosts without a detected error of the clock."""
    return [
        a for kind in ("map", "reduce") for a in history.of(kind) if a.host not in history.skews_s
    ]


def _seen_start(
    trusted: Sequence[Sequence[Attempt]],
    rates: Sequence[float | None],
    firsts: Sequence[float | None],
) -> tuple[float, list[float], int] | None:
    """Return (median duration of a task's start in s, residuals, number of histories).

    The duration is estimated from ``firsts``, the times of the first 1 % of the bytes, minus the
    transmission time of this 1 %. Returns None if no history has a recorded network.
    """
    starts = []
    for attempts, rate_bps, first_s in zip(trusted, rates, firsts, strict=True):
        if first_s is None:
            continue
        hosts = len({a.host for a in attempts if a.kind == "map"})
        shuffled = sum(_shuffled(a) for a in attempts if a.kind == "reduce")
        # Each node reads 1/hosts of the shuffled bytes, of which 1/hosts lies on the node itself
        # and does not use its link.
        per_node = shuffled * (hosts - 1) / hosts**2 if hosts else 0.0
        passing_s = 0.01 * 8 * per_node / (_PAYLOAD * rate_bps) if rate_bps else 0.0
        starts.append(max(0.0, first_s - passing_s))
    if not starts:
        return None
    middle = statistics.median(starts)
    return middle, [s / middle - 1 for s in starts if middle > 0], len(starts)


def _task_start(
    trusted: Sequence[Sequence[Attempt]], rates: Sequence[float | None], maps: Sequence[Attempt]
) -> tuple[float, list[float], int] | None:
    """Return (shortest start of a task in s, residuals, number of histories).

    Without reduce tasks the start is half of the shortest map, at most 1 s, without residuals;
    without maps the result is None.
    """
    shortest: list[float] = []
    for attempts, rate_bps in zip(trusted, rates, strict=True):
        hosts = len({a.host for a in attempts if a.kind == "map"})
        starts = []
        for a in attempts:
            shuffle_s = _between(a.started_s, a.input_done_s)
            if a.kind != "reduce" or shuffle_s is None:
                continue
            remote = _shuffled(a) * (hosts - 1) / hosts if hosts else 0.0
            on_wire_s = 8 * remote / (_PAYLOAD * rate_bps) if rate_bps else 0.0
            starts.append(max(0.0, shuffle_s - on_wire_s))
        if starts:
            shortest.append(min(starts))
    if shortest:
        # The network can only lengthen the time before the first byte, so the shortest observed
        # time is the best estimate of the start alone.
        least = min(shortest)
        residuals = [s / least - 1 for s in shortest if least > 0]
        return least, residuals, len(shortest)
    wholes = _known([_whole(a) for a in maps])
    return (min(1.0, min(wholes) / 2), [], 0) if wholes else None


def _rate(
    attempts: Iterable[Attempt],
    size: Callable[[Attempt], float],
    time: Callable[[Attempt], float | None],
) -> tuple[float, list[float]] | None:
    """Return (median rate of attempts in bytes per s, residual of each usable attempt).

    ``size`` returns the bytes of an attempt, ``time`` its time in s or None. Attempts without bytes
    or with a time below 1 ms are not usable; without usable attempts the result is None. A residual
    is observed time / time at the median rate, minus 1.
    """
    pairs = [(size(a), time(a)) for a in attempts]
    usable = [(b, t) for b, t in pairs if b > 0 and t is not None and t >= _LEAST_S]
    if not usable:
        return None
    rate = statistics.median(b / t for b, t in usable)
    return rate, [t / (b / rate) - 1 for b, t in usable]


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(0.0, end - start)


def _whole(a: Attempt) -> float | None:
    return _between(a.started_s, a.finished_s)


def _less(time: float | None, *parts: float) -> float | None:
    return None if time is None else time - sum(parts)


def _at(size: float, rate: float | None) -> float:
    return size / rate if rate else 0.0


def _known(values: Iterable[float | None]) -> list[float]:
    return [v for v in values if v is not None]


def _read(a: Attempt) -> float:
    return float(a.counters.get("HDFS_BYTES_READ", 0))


def _spilled(a: Attempt) -> float:
    return float(a.counters.get("MAP_OUTPUT_MATERIALIZED_BYTES", 0))


def _shuffled(a: Attempt) -> float:
    return float(a.counters.get("REDUCE_SHUFFLE_BYTES", 0))


def _written(a: Attempt) -> float:
    return float(a.counters.get("HDFS_BYTES_WRITTEN", 0))


def _last_end(history: History) -> float | None:
    ends = _known(a.finished_s for kind in ("map", "reduce") for a in history.of(kind))
    return max(ends, default=None)


def _observe(
    histories: Sequence[History], maps: Sequence[Attempt], reduces: Sequence[Attempt]
) -> list[Observation]:
    found: list[Observation] = []

    def see(meaning: str, values: Iterable[float | None], unit: str = "s") -> None:
        known = _known(values)
        if known:
            middle = statistics.median(known)
            found.append(Observation(meaning, unit, middle, min(known), max(known), len(known)))

    see("submission to application master", (h.master_s for h in histories))
    see("application master to job start", (_between(h.master_s, h.inited_s) for h in histories))
    see("last map to first reduce", (_gap(h) for h in histories))
    see("map function", (_between(a.started_s, a.input_done_s) for a in maps))
    see("sort and spill of a map", (_between(a.input_done_s, a.finished_s) for a in maps))
    see("shuffle of a reduce", (_between(a.started_s, a.input_done_s) for a in reduces))
    see("CPU of a map", (_cpu_per_mb(a, _read(a)) for a in maps), "s/MB")
    see("CPU of a reduce", (_cpu_per_mb(a, _shuffled(a)) for a in reduces), "s/MB")
    return found


def _gap(history: History) -> float | None:
    """Return the time in s from the end of the last map to the start of the first reduce.

    Returns None if a reduce starts before this end, or if the job has no reduces.
    """
    maps, reduces = history.of("map"), history.of("reduce")
    last = max(_known(a.finished_s for a in maps), default=None)
    first = min(_known(a.started_s for a in reduces), default=None)
    if last is None or first is None or first < last:
        return None
    return first - last


def _cpu_per_mb(a: Attempt, size: float) -> float | None:
    cpu_ms = a.counters.get("CPU_MILLISECONDS")
    return cpu_ms / 1000 / (size / 1e6) if cpu_ms is not None and size > 0 else None


def _job_residual(found: Calibration, history: History, heartbeat_s: float) -> JobResidual:
    """Return the observed runtime of a job, and the runtime that the estimated phases give.

    The estimated phases do not include the waiting times of maps and the times of shuffles, so the
    estimate uses their observed values.
    """
    values = {e.key: e.value for e in found.estimates}
    rates = {key: values.get(f"costs.{key}") for key in ("disk_rate", "map_rate", "reduce_rate")}
    start = values.get("costs.task_start", 0.0)
    first = values.get("control.job_setup", 0.0) + heartbeat_s / 2
    maps, reduces = history.of("map"), history.of("reduce")
    began = min(a.started_s or 0.0 for a in maps)
    ends = [
        first
        + ((a.started_s or 0.0) - began)
        + start
        + _at(_read(a), rates["map_rate"])
        + _at(_spilled(a), rates["disk_rate"])
        for a in maps
    ]
    end = max(ends)
    gap = _gap(history)
    if gap is not None:
        end += gap
        first_reduce = min(_known(a.started_s for a in reduces))
        end = max(
            end
            + ((a.input_done_s or 0.0) - first_reduce)
            + _at(_shuffled(a) + min(_written(a), _PIECE_BYTES), rates["disk_rate"])
            + _at(_shuffled(a), rates["reduce_rate"])
            for a in reduces
        )
    elif reduces:
        end = max(_known(a.finished_s for a in reduces))
    return JobResidual(history, history.finished_s, end + values.get("control.job_cleanup", 0.0))


def _warnings(histories: Sequence[History]) -> list[str]:
    found: list[str] = []
    for history in histories:
        for host, off in history.skews_s.items():
            ahead = "ahead" if off > 0 else "behind"
            found.append(
                f"{history.path.name}: the clock of {host} is {ahead} by {abs(off):.1f} s or more: "
                "the tasks of this host are left out"
            )
        failed = sum(1 for a in history.attempts if not a.succeeded)
        if failed:
            found.append(
                f"{history.path.name}: {failed} task attempts did not succeed and are left out"
            )
    if not any(a for h in histories for a in h.of("reduce")):
        found.append(
            "no history has successful reduce tasks: disk and reduce rates cannot be estimated"
        )
    return found
