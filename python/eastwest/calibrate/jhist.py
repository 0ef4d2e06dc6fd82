"""Histories of ended Hadoop jobs, in the form that the calibration uses.

``eastwest.traces.jhist`` parses the files. This module converts times to seconds since the
submission of the job, and refuses a history that is truncated or whose job has not ended. It
detects the wrong clock of a node by an impossible order of times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from eastwest.errors import InputError
from eastwest.traces import hadoop, jhist
from eastwest.traces.source import Source

#: Maximum length of a decompressed history in bytes.
MOST_BYTES = 1 << 30


class HistoryError(InputError):
    """Error of a job history that cannot be used; the message names the file, if known the line."""


@dataclass
class Attempt:
    """One attempt to execute a Hadoop task; times in seconds since the job was submitted."""

    name: str
    kind: str  # map or reduce
    host: str = ""
    started_s: float | None = None
    #: End of the map function, or of a reduce's shuffle; None where the history has no such time.
    input_done_s: float | None = None
    #: End of a reduce's merge; None for maps.
    sorted_s: float | None = None
    finished_s: float | None = None
    status: str = ""
    locality: str = ""
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        """Whether the attempt succeeded and its times are complete."""
        ends = (self.started_s, self.input_done_s, self.finished_s)
        return self.status == "SUCCEEDED" and all(end is not None for end in ends)


@dataclass
class History:
    """History of one Hadoop job; times in seconds since the job was submitted.

    ``master_s`` is the start of the application master, ``inited_s`` the initialisation of the job.
    """

    path: Path
    job: str
    name: str
    #: Time of the job's submission in seconds since 1970 (Unix time).
    submitted_at_s: float
    master_s: float | None
    inited_s: float | None
    finished_s: float
    status: str
    attempts: list[Attempt]
    #: For hosts with impossible times: minimum error of the host's clock in seconds, + if ahead.
    skews_s: dict[str, float]

    def of(self, kind: str) -> list[Attempt]:
        """Return the successful attempts of a kind (map, reduce), in the order of their starts."""
        found = [a for a in self.attempts if a.kind == kind and a.succeeded]
        return sorted(found, key=lambda a: (a.started_s or 0.0, a.name))


def read(path: str | Path) -> History:
    """Return the job history in a file, in JSON or binary form, compressed or not.

    Raises ``HistoryError`` if the file is not a history or is truncated, or if the job has not
    ended; ``OSError`` if the file cannot be read.
    """
    path = Path(path)
    try:
        with Source(path) as source:
            return _read(path, source)
    except HistoryError:
        raise
    except InputError as error:
        raise HistoryError(str(error)) from None


def _read(path: Path, source: Source) -> History:
    if not source.peek(1) and not source.cut:
        raise HistoryError(f"{path}: is empty: a job history is needed")
    walk, line = jhist.Walk(), 1
    for line, kind, event in jhist.records(source):
        if source.unpacked > MOST_BYTES:
            raise HistoryError(
                f"{path}:{line}: is too large for a job history: at most 1 GiB (decompressed) is "
                "allowed"
            )
        if not kind and not source.cut:
            raise HistoryError(f"{path}:{line}: {event}")
        try:
            if kind:
                walk.take(kind, event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HistoryError(f"{path}:{line}: {jhist.wrong(error)}") from None
        except jhist.TooManyError as error:
            raise HistoryError(f"{path}:{line}: {error}") from None
    if source.cut:
        message = f"the compressed file is damaged or truncated: {source.cut}"
        raise HistoryError(f"{path}:{line}: {message}")
    if walk.job is None or walk.job.submit_ms is None:
        raise HistoryError(f"{path}:{max(2, line)}: ends before the event of the job's submission")
    if walk.end is None or walk.end[0] is None:
        message = "ends before the event of the job's end: the file may be truncated here"
        raise HistoryError(f"{path}:{line}: {message}")
    return _history(path, walk, walk.job, walk.job.submit_ms, walk.end[0], walk.end[1])


def _history(
    path: Path, walk: jhist.Walk, job: hadoop.Job, start_ms: int, end_ms: int, status: str
) -> History:
    def since(at_ms: int | None) -> float | None:
        return None if at_ms is None else (at_ms - start_ms) / 1000

    attempts = [
        Attempt(
            name=name,
            kind=a.kind,
            host=a.host or "",
            started_s=since(a.start_ms),
            input_done_s=since(a.input_done_ms),
            sorted_s=since(a.sorted_ms),
            finished_s=since(a.finish_ms),
            status="SUCCEEDED" if a.outcome == "succeeded" else (a.outcome or "").upper(),
            locality=a.locality or "",
            counters=a.counters or {},
        )
        for name, a in job.attempts.items()
    ]
    finished = (end_ms - start_ms) / 1000
    return History(
        path=path,
        job=job.source_id,
        name=job.name or "",
        submitted_at_s=start_ms / 1000,
        master_s=since(walk.master_ms),
        inited_s=since(job.launch_ms),
        finished_s=finished,
        status=status,
        attempts=attempts,
        skews_s=_skews(attempts, finished),
    )


#: Tolerated difference between the clocks of hosts, in s: the shortest interval of heartbeats.
_TOLERANCE_S = 0.5


def _skews(attempts: list[Attempt], job_end_s: float) -> dict[str, float]:
    """Return by host with impossible times: the minimum error of its clock in s (+ if ahead).

    A time is impossible if it is more than 0.5 s before the start or after the end of its
    attempt, or if the attempt ends before its start.
    """
    least: dict[str, float] = {}
    for attempt in attempts:
        start, end = attempt.started_s, attempt.finished_s
        if start is None or end is None:
            continue
        end = min(end, job_end_s)
        for stamp in (attempt.input_done_s, attempt.sorted_s):
            if stamp is None:
                continue
            off = min(0.0, stamp - start) + max(0.0, stamp - end)
            if abs(off) > max(_TOLERANCE_S, abs(least.get(attempt.host, 0.0))):
                least[attempt.host] = off
        if end < start and abs(end - start) > abs(least.get(attempt.host, 0.0)):
            least[attempt.host] = end - start
    return dict(sorted(least.items()))
