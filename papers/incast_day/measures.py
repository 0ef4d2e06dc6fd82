"""Compares the jobs of two runs, and measures sequences of consecutive jobs.

A job's time is from its submission to its end. Jobs of two runs correspond when their numbers are
equal: a trace gives equal jobs equal numbers. All comparisons are seed by seed; intervals are
Student t intervals over seeds. A *tall* job takes more than ``above`` times the tenth percentile of
its sequence, which is its *floor*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eastwest.claims.measures import (
    Data,
    Measured,
    MeasureError,
    Row,
    Settings,
    measure,
)
from eastwest.results import Result
from eastwest.stats import mean_interval

#: Quantiles, as shares of all jobs, at which a figure shows job times.
_SHARES = [i / 100 for i in range(1, 100)]

#: Default upper limit of the bytes of a job: more than any job has.
_LARGEST = 1 << 62


@dataclass(frozen=True)
class _Job:
    """A finished job."""

    number: int
    runtime_s: float
    #: Sum of input, shuffle and output bytes.
    moved_bytes: int


def _jobs(result: Result) -> list[_Job]:
    """Return the finished jobs of a run, in the order of their submission."""
    names = ("submitted_s", "job", "runtime_s", "input_bytes", "shuffle_bytes", "output_bytes")
    table = result.jobs
    rows = sorted(table.filter(table["failed"] == "").select(*names).rows())
    if not rows:
        raise MeasureError(f"{result.path} has no finished jobs")
    return [_Job(job, time_s, sum(moved)) for _, job, time_s, *moved in rows]


def _by_seed(data: Data, at: Settings) -> dict[int, list[_Job]]:
    return {seed: _jobs(result) for _, seed, result in data.results(at)}


def _pairs(data: Data, at: Settings, against: Settings) -> list[tuple[list[_Job], list[_Job]]]:
    ours, theirs = _by_seed(data, at), _by_seed(data, against)
    both = [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
    if not both:
        raise MeasureError("the two points have no seed in common")
    return both


def _apart(data: Data, at: Settings, against: Settings) -> list[tuple[list[_Job], list[_Job]]]:
    """Return pairs of runs: each seed at one point of the sweep with the next seed at the other."""
    ours, theirs = _by_seed(data, at), _by_seed(data, against)
    seeds = sorted(ours.keys() & theirs.keys())
    if len(seeds) < 2:
        raise MeasureError("the two points have fewer than two seeds in common")
    return [
        (ours[seed], theirs[other])
        for seed, other in zip(seeds, [*seeds[1:], seeds[0]], strict=True)
    ]


def _over_seeds(values: Sequence[float], rows: list[Row] | None = None) -> Measured:
    found = mean_interval(list(values))
    return Measured(found.value, found.low, found.high, found.n, rows=rows or [])


def _quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` of the values are, with linear interpolation."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _times(jobs: Sequence[_Job]) -> list[float]:
    return [job.runtime_s for job in jobs]


@measure("job-time-shift")
def job_time_shift(data: Data, at: Settings, against: Settings, share: float = 0.5) -> Measured:
    """Return how much longer jobs take at ``at``, in s, at the quantile ``share`` of their times.

    Positive: jobs take longer at ``at`` than at ``against``. The rows are both distributions, means
    over seeds.
    """
    pairs = [(_times(ours), _times(theirs)) for ours, theirs in _pairs(data, at, against)]
    shifts = [_quantile(ours, share) - _quantile(theirs, share) for ours, theirs in pairs]
    rows: list[Row] = [
        {
            "share": each,
            "at_s": mean_interval([_quantile(ours, each) for ours, _ in pairs]).value,
            "against_s": mean_interval([_quantile(theirs, each) for _, theirs in pairs]).value,
        }
        for each in _SHARES
    ]
    return _over_seeds(shifts, rows)


@measure("jobs-sooner")
def jobs_sooner(
    data: Data,
    at: Settings,
    against: Settings,
    by: float = 0.01,
    least_bytes: int = 0,
    apart: bool = False,
) -> Measured:
    """Return the share of jobs that end sooner at ``at``, of those that differ by more than ``by``.

    Only jobs that move ``least_bytes`` or more count. One half means that there is no pattern. With
    ``apart`` each run is compared with one of another seed, like two runs of a real cluster;
    otherwise with the run of its own seed.
    """
    shares: list[float] = []
    for ours, theirs in (_apart if apart else _pairs)(data, at, against):
        before = {job.number: job.runtime_s for job in theirs}
        large = [job for job in ours if job.moved_bytes >= least_bytes and job.number in before]
        changes = [job.runtime_s / before[job.number] - 1 for job in large]
        sooner = sum(change < -by for change in changes)
        later = sum(change > by for change in changes)
        if sooner + later:
            shares.append(sooner / (sooner + later))
    if not shares:
        raise MeasureError("no job differs")
    return _over_seeds(shares)


def _with_timeouts(result: Result) -> set[int]:
    """Return the numbers of jobs with an expired retransmission timer on any of their flows."""
    table = result.flows
    return set(table.filter((table["timeouts"] > 0) & table["job"].is_not_null())["job"])


@measure("jobs-later")
def jobs_later(data: Data, at: Settings, against: Settings, by_s: float = 1.0) -> Measured:
    """Return the share of all jobs that end more than ``by_s`` seconds later at ``at``."""
    shares: list[float] = []
    for ours, theirs in _pairs(data, at, against):
        before = {job.number: job.runtime_s for job in theirs}
        both = [job for job in ours if job.number in before]
        if both:
            later = sum(job.runtime_s - before[job.number] > by_s for job in both)
            shares.append(later / len(both))
    if not shares:
        raise MeasureError("the two points have no job in common")
    return _over_seeds(shares)


@measure("jobs-with-timeouts")
def jobs_with_timeouts(
    data: Data, at: Settings, least_bytes: int = 0, most_bytes: int = _LARGEST
) -> Measured:
    """Return the share of jobs with a timeout, of those that move the given number of bytes."""
    shares: list[float] = []
    for _, _, result in data.results(at):
        jobs = [job for job in _jobs(result) if least_bytes <= job.moved_bytes < most_bytes]
        hit = _with_timeouts(result)
        if jobs:
            shares.append(sum(job.number in hit for job in jobs) / len(jobs))
    if not shares:
        raise MeasureError(f"no job moves between {least_bytes:,} and {most_bytes:,} bytes")
    return _over_seeds(shares)


@measure("job-seconds-saved")
def job_seconds_saved(
    data: Data,
    at: Settings,
    against: Settings,
    timeouts: bool,
    least_bytes: int = 0,
    most_bytes: int = _LARGEST,
) -> Measured:
    """Return by how many seconds jobs end sooner at ``at``, as a mean.

    Only jobs of ``least_bytes`` to ``most_bytes`` count. With ``timeouts``, these are jobs that had
    a timeout at ``against``; otherwise, jobs without a timeout there.
    """
    ours = _by_seed(data, at)
    means: list[float] = []
    for _, seed, result in data.results(against):
        hit = _with_timeouts(result)
        after = {job.number: job.runtime_s for job in ours.get(seed, [])}
        saved = [
            job.runtime_s - after[job.number]
            for job in _jobs(result)
            if job.number in after
            and (job.number in hit) == timeouts
            and least_bytes <= job.moved_bytes < most_bytes
        ]
        if saved:
            means.append(sum(saved) / len(saved))
    if not means:
        raise MeasureError("no such job")
    return _over_seeds(means)


def _sequence(
    data: Data, at: Settings, first: int, last: int, of: Callable[[list[_Job]], float]
) -> Measured:
    """Return a number of consecutive jobs, mean over seeds; the rows are of the first seed."""
    values: list[float] = []
    rows: list[Row] = []
    for seed, jobs in sorted(_by_seed(data, at).items()):
        part = jobs[first - 1 : last]
        if len(part) < last - first + 1:
            raise MeasureError(f"the run of seed {seed} has {len(jobs)} jobs, not {last}")
        values.append(of(part))
        rows = rows or [
            {"number": number, "runtime_s": job.runtime_s, "bytes": job.moved_bytes}
            for number, job in enumerate(part, first)
        ]
    return _over_seeds(values, rows)


def _floor_s(jobs: Sequence[_Job]) -> float:
    return _quantile(_times(jobs), 0.1)


def _tall(jobs: Sequence[_Job], above: float) -> list[_Job]:
    floor_s = _floor_s(jobs)
    return [job for job in jobs if job.runtime_s > above * floor_s]


@measure("jobs-at-the-floor")
def jobs_at_the_floor(
    data: Data, at: Settings, first: int, last: int, within: float = 2.0
) -> Measured:
    """Return the share of consecutive jobs that take at most ``within`` times the floor."""
    return _sequence(data, at, first, last, lambda jobs: 1 - len(_tall(jobs, within)) / len(jobs))


@measure("tall-jobs")
def tall_jobs(data: Data, at: Settings, first: int, last: int, above: float = 10.0) -> Measured:
    """Return the share of consecutive jobs that are tall: above ``above`` times the floor."""
    return _sequence(data, at, first, last, lambda jobs: len(_tall(jobs, above)) / len(jobs))


@measure("sequences-with-tall-jobs")
def sequences_with_tall_jobs(
    data: Data, at: Settings, length: int = 100, above: float = 10.0, most: float = 0.1
) -> Measured:
    """Return the share of sequences of ``length`` consecutive jobs of a run with tall jobs.

    A sequence counts if at least one job is tall, and at most the share ``most`` of its jobs.
    """
    shares: list[float] = []
    for seed, jobs in sorted(_by_seed(data, at).items()):
        firsts = range(0, len(jobs) - length + 1, length)
        if not firsts:
            raise MeasureError(f"the run of seed {seed} has {len(jobs)} jobs, not {length}")
        tall = [len(_tall(jobs[first : first + length], above)) for first in firsts]
        shares.append(sum(1 <= each <= most * length for each in tall) / len(tall))
    return _over_seeds(shares)


@measure("size-of-tall-jobs")
def size_of_tall_jobs(
    data: Data, at: Settings, first: int, last: int, above: float = 10.0
) -> Measured:
    """Return the median bytes of the tall jobs of a sequence over the median of all its jobs.

    The value is 0 if no job is tall.
    """

    def ratio(jobs: list[_Job]) -> float:
        tall = _tall(jobs, above)
        if not tall:
            return 0.0
        ours, theirs = (_quantile([job.moved_bytes for job in each], 0.5) for each in (tall, jobs))
        return ours / max(1.0, theirs)

    return _sequence(data, at, first, last, ratio)


@measure("jobs-below")
def jobs_below(data: Data, at: Settings, moved: int, scaled_by: float = 1.0) -> Measured:
    """Return the share of jobs that moved less than ``moved`` bytes before sizes were scaled."""
    most = moved * scaled_by
    runs = _by_seed(data, at).values()
    return _over_seeds([sum(job.moved_bytes < most for job in jobs) / len(jobs) for jobs in runs])


@measure("largest-job")
def largest_job(data: Data, at: Settings, scaled_by: float = 1.0) -> Measured:
    """Return the bytes that the largest job moved before sizes were scaled."""
    runs = _by_seed(data, at).values()
    return _over_seeds([max(job.moved_bytes for job in jobs) / scaled_by for jobs in runs])
