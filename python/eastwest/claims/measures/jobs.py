"""Jobs of one run held against the same jobs of another, and sequences of consecutive jobs.

A job's time is from its submission to its end. Jobs of two runs are the same where their numbers
are: a trace gives equal jobs equal numbers. All is taken seed by seed; intervals are Student t
intervals over seeds. A *tall* job takes more than ``above`` times the tenth percentile of its
sequence, which is its *floor*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eastwest.claims.measures.base import (
    Data,
    Measured,
    MeasureError,
    Row,
    Settings,
    measure,
)
from eastwest.results import Result
from eastwest.stats import mean_interval

#: Shares of all jobs at which a figure shows their times.
_SHARES = [i / 100 for i in range(1, 100)]

#: Bytes that no job moves.
_LARGEST = 1 << 62


@dataclass(frozen=True)
class _Job:
    """A finished job."""

    number: int
    runtime_s: float
    #: Input, shuffle and output together.
    moved_bytes: int


def _jobs(result: Result) -> list[_Job]:
    """Finished jobs of a run, as they were submitted."""
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
    """Runs of a seed at one point with those of the next seed at the other."""
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
    """Value below which ``share`` of the values lie; between two of them on a straight line."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _times(jobs: Sequence[_Job]) -> list[float]:
    return [job.runtime_s for job in jobs]


@measure("job-time-shift")
def job_time_shift(data: Data, at: Settings, against: Settings, share: float = 0.5) -> Measured:
    """Seconds by which the distribution of job times lies further right at ``share`` of all jobs.

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
    """Share of jobs that end sooner at ``at``, of those whose times differ by more than ``by``.

    Only jobs that move ``least_bytes`` or more count. One half is no pattern. With ``apart`` each
    run is held against one of another seed, as two runs of a real cluster are; else against the
    run of its own seed.
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
    """Jobs of a run that a retransmission timer has expired for, on any of their flows."""
    table = result.flows
    return set(table.filter((table["timeouts"] > 0) & table["job"].is_not_null())["job"])


@measure("jobs-with-timeouts")
def jobs_with_timeouts(
    data: Data, at: Settings, least_bytes: int = 0, most_bytes: int = _LARGEST
) -> Measured:
    """Share of jobs of which a flow has met a timeout; of those that move so many bytes."""
    shares: list[float] = []
    for _, _, result in data.results(at):
        jobs = [job for job in _jobs(result) if least_bytes <= job.moved_bytes < most_bytes]
        hit = _with_timeouts(result)
        if jobs:
            shares.append(sum(job.number in hit for job in jobs) / len(jobs))
    if not shares:
        raise MeasureError("no job is of that size")
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
    """Mean seconds by which jobs end sooner at ``at``; of those that move so many bytes.

    With ``timeouts`` of jobs that have met one at ``against``, else of those that have not.
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
    """A number of the jobs from the first to the last submitted; the rows are the first seed's."""
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
    """Share of consecutive jobs that take at most ``within`` times their sequence's floor."""
    return _sequence(data, at, first, last, lambda jobs: 1 - len(_tall(jobs, within)) / len(jobs))


@measure("tall-jobs")
def tall_jobs(data: Data, at: Settings, first: int, last: int, above: float = 10.0) -> Measured:
    """Share of consecutive jobs that are tall."""
    return _sequence(data, at, first, last, lambda jobs: len(_tall(jobs, above)) / len(jobs))


@measure("size-of-tall-jobs")
def size_of_tall_jobs(
    data: Data, at: Settings, first: int, last: int, above: float = 10.0
) -> Measured:
    """Median bytes that a sequence's tall jobs move over those of all its jobs.

    0 where no job is tall.
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
    """Share of jobs that moved less than ``moved`` bytes before sizes were scaled."""
    most = moved * scaled_by
    runs = _by_seed(data, at).values()
    return _over_seeds([sum(job.moved_bytes < most for job in jobs) / len(jobs) for jobs in runs])


@measure("largest-job")
def largest_job(data: Data, at: Settings, scaled_by: float = 1.0) -> Measured:
    """Bytes that the largest job moved before sizes were scaled."""
    runs = _by_seed(data, at).values()
    return _over_seeds([max(job.moved_bytes for job in jobs) / scaled_by for jobs in runs])
