"""Job histories of Hadoop 2 and 3 (MRv2): ``*.jhist`` files, Avro in its JSON form.

A file has the line ``Avro-Json``, a line with the schema, and one record a line; blank lines may
stand between them. Times are milliseconds since 1970. Those of jobs and containers are told by the
application master's clock; the ends of map, shuffle and sort inside an attempt by the clock of the
node it ran on, so a node's clock that is off shows in an order that cannot be.

Facts about events and fields are those of Hadoop 3.4, ``Events.avpr``.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from eastwest.errors import InputError
from eastwest.units import clean

#: Most bytes of a history, unpacked, of a line of it, and most attempts.
MOST_BYTES = 1 << 30
MOST_LINE_BYTES = 16 << 20
MOST_ATTEMPTS = 2_000_000
#: Later than this a time in milliseconds is none: the year 5138.
_LATEST_MS = 10**14

_HEADER = "Avro-Json"
_ENDS = {
    "JobFinished": "SUCCEEDED",
    "JobUnsuccessfulCompletion": "FAILED",
}


class HistoryError(InputError):
    """A history cannot be used; the message names file and line."""


@dataclass
class Attempt:
    """One attempt at a task; times in seconds since the job was submitted."""

    name: str
    kind: str  # map or reduce
    host: str = ""
    started_s: float | None = None
    #: End of the map function, or of the shuffle.
    input_done_s: float | None = None
    #: End of a reduce's merge.
    sorted_s: float | None = None
    finished_s: float | None = None
    status: str = ""
    locality: str = ""
    counters: dict[str, int] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        """Whether it ended well and its times are complete."""
        ends = (self.started_s, self.input_done_s, self.finished_s)
        return self.status == "SUCCEEDED" and all(end is not None for end in ends)


@dataclass
class History:
    """One job's history; times in seconds since it was submitted."""

    path: Path
    job: str
    name: str
    #: When it was submitted, in seconds since 1970.
    submitted_at_s: float
    master_s: float | None
    inited_s: float | None
    finished_s: float
    status: str
    attempts: list[Attempt]
    #: What cannot be, by host: a node's clock is off by at least so many seconds.
    skews_s: dict[str, float]

    def of(self, kind: str) -> list[Attempt]:
        """Attempts of a kind that succeeded, in the order of their starts."""
        found = [a for a in self.attempts if a.kind == kind and a.succeeded]
        return sorted(found, key=lambda a: (a.started_s or 0.0, a.name))


def read(path: str | Path) -> History:
    """Read a history, packed with gzip or not.

    Raises ``HistoryError`` where it is no history of this form, is cut off, or its job has not
    ended; ``OSError`` where it cannot be read.
    """
    path = Path(path)
    if not path.is_file():
        raise HistoryError(f"{path}: there is no such file")
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    walk = _Walk(path)
    try:
        with path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as unpacked:
            for number, line in _lines(path, unpacked if packed else raw):
                walk.take(number, line)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise walk.wrong(f"the packed file is damaged or cut off: {error}") from None
    return walk.finish()


def _lines(path: Path, stream: IO[bytes] | gzip.GzipFile) -> Iterator[tuple[int, str]]:
    total = 0
    for number in range(1, MOST_BYTES):
        line = stream.readline(MOST_LINE_BYTES + 1)
        if not line:
            return
        total += len(line)
        if len(line) > MOST_LINE_BYTES or total > MOST_BYTES:
            raise HistoryError(f"{path}:{number}: is too large for a job history")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            binary = "it looks like Avro's binary form; " if line.startswith(b"Obj") else ""
            message = f"is not text; {binary}histories are read in Avro's JSON form"
            raise HistoryError(f"{path}:{number}: {message}") from None
        yield number, text.strip()


class _Walk:
    """Collects a history line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 0
        self.seen = 0
        self.start_ms: int | None = None
        self.job = ""
        self.name = ""
        self.master_ms: int | None = None
        self.inited_ms: int | None = None
        self.end: tuple[int, str] | None = None
        self.attempts: dict[str, Attempt] = {}
        self.scheduled_ms: dict[str, int] = {}

    def wrong(self, message: str) -> HistoryError:
        return HistoryError(f"{self.path}:{self.line}: {message}")

    def take(self, number: int, line: str) -> None:
        self.line = number
        if not line:
            return
        self.seen += 1
        if self.seen == 1:
            if line != _HEADER:
                found = clean(line, 30)
                raise self.wrong(f"starts with {found!r}, a job history with {_HEADER!r}")
            return
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise self.wrong("is no JSON record; the file may have been cut off here") from None
        if self.seen == 2:
            return  # the schema
        try:
            ((kind, event),) = record["event"].items()
            self._event(kind.rpartition(".")[2], event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = clean(str(error), 60)
            raise self.wrong(f"is no record of a job history ({said})") from None

    def _event(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "JobSubmitted":
            self.start_ms = _time(event["submitTime"])
            self.job, self.name = str(event["jobid"]), str(event["jobName"])
        elif kind == "AMStarted":
            # the last application master is the one whose tasks count
            self.master_ms = _time(event["startTime"])
        elif kind == "JobInited":
            self.inited_ms = _time(event["launchTime"])
        elif kind in _ENDS:
            self.end = (_time(event["finishTime"]), str(event.get("jobStatus") or _ENDS[kind]))
        elif kind == "TaskAttemptStarted":
            attempt = self._attempt(event)
            attempt.started_s = self._since(event["startTime"])
            attempt.locality = str(_plain(event.get("locality")) or "")
        elif kind in ("MapAttemptFinished", "ReduceAttemptFinished"):
            attempt = self._attempt(event)
            attempt.status = str(event["taskStatus"])
            attempt.host = str(event["hostname"])
            attempt.finished_s = self._since(event["finishTime"])
            done = "mapFinishTime" if attempt.kind == "map" else "shuffleFinishTime"
            attempt.input_done_s = self._since(event[done])
            if attempt.kind == "reduce":
                attempt.sorted_s = self._since(event["sortFinishTime"])
            attempt.counters = _counters(event.get("counters"))
        elif kind == "TaskAttemptUnsuccessfulCompletion":
            attempt = self._attempt(event)
            attempt.status = str(event["status"])
            attempt.finished_s = self._since(event["finishTime"])

    def _attempt(self, event: dict[str, Any]) -> Attempt:
        name = str(event["attemptId"])
        kind = {"MAP": "map", "REDUCE": "reduce"}.get(str(event["taskType"]), "other")
        if name not in self.attempts and len(self.attempts) >= MOST_ATTEMPTS:
            raise self.wrong(f"has more than {MOST_ATTEMPTS:,} attempts")
        return self.attempts.setdefault(name, Attempt(name, kind))

    def _since(self, value: Any) -> float:
        if self.start_ms is None:
            raise self.wrong("speaks of tasks before the job was submitted")
        return (_time(value) - self.start_ms) / 1000

    def finish(self) -> History:
        if self.seen == 0:
            raise HistoryError(f"{self.path}: is empty")
        if self.start_ms is None:
            raise self.wrong("ends before its job was submitted")
        if self.end is None:
            raise self.wrong("ends before its job has: the file may have been cut off here")
        start = self.start_ms
        attempts = list(self.attempts.values())
        master, inited = (
            None if at is None else (at - start) / 1000 for at in (self.master_ms, self.inited_ms)
        )
        finished, status = (self.end[0] - start) / 1000, self.end[1]
        skews = _skews(attempts, finished)
        return History(
            path=self.path,
            job=self.job,
            name=self.name,
            submitted_at_s=start / 1000,
            master_s=master,
            inited_s=inited,
            finished_s=finished,
            status=status,
            attempts=attempts,
            skews_s=skews,
        )


def _time(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _LATEST_MS:
        raise ValueError(f"a time is {value!r}")
    return value


def _plain(value: Any) -> Any:
    """A value of an Avro union: ``null``, or an object with the type's name."""
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value


def _counters(tree: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for group in (tree or {}).get("groups", []):
        for counter in group["counts"]:
            value = counter["value"]
            if isinstance(value, int) and not isinstance(value, bool):
                found[str(counter["name"])] = value
    return found


#: Clocks that agree to this are taken as the same: a heartbeat of a task takes so long at least.
_TOLERANCE_S = 0.5


def _skews(attempts: list[Attempt], job_end_s: float) -> dict[str, float]:
    """By how much clocks of hosts must be off at least: an attempt's own stamps lie inside it."""
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
