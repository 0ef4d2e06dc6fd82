"""Shared parts of the readers of Hadoop's histories: jobs, counters, host names, settings.

The bytes of a job are those of the job's counters if the history has them. Otherwise they are the
sum over the tasks of the job; for each task, the last successful attempt counts, as in Hadoop. The
input and output of a task are the sums of the task's counters over all file systems except the
local one. A job without reduces has 0 shuffled bytes; no other missing value is replaced by zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eastwest.units import clean

if TYPE_CHECKING:
    from eastwest.account import Account
    from eastwest.traces.write import Writer

#: Maximum number of attempts in memory, over all jobs that are in memory together.
MOST_ATTEMPTS = 500_000
#: Earliest accepted time in ms since 1970: 1 January 1980. Smaller values are in another unit.
EARLIEST_MS = 315_532_800_000
#: Latest accepted time in ms since 1970: 1 January 2100.
LATEST_MS = 4_102_444_800_000
_MOST_COUNT = (1 << 63) - 1
_LOCAL = "FILE"
_MOST_TEXT = 4096

_OUTCOMES = {
    "SUCCESS": "succeeded",
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "FAIL": "failed",
    "ERROR": "failed",
    "KILLED": "killed",
}
#: Hadoop's states of jobs and attempts that have not ended.
_NOT_ENDED = {"RUNNING", "PREP", "STARTING", "UNASSIGNED", "NEW", "SCHEDULED", "COMMIT_PENDING"}
_KINDS = {
    "MAP": "map",
    "REDUCE": "reduce",
    "SETUP": "setup",
    "JOB_SETUP": "setup",
    "CLEANUP": "cleanup",
    "JOB_CLEANUP": "cleanup",
    "TASK_CLEANUP": "cleanup",
}
#: Column in the table of attempts, by the name of Hadoop's counter. Counters of other file systems
#: than the local one are recognised by their suffix.
_COUNTERS = {
    "MAP_OUTPUT_BYTES": "map_output_bytes",
    "REDUCE_SHUFFLE_BYTES": "shuffle_bytes",
    "SPILLED_RECORDS": "spilled_records",
    "FILE_BYTES_READ": "file_bytes_read",
    "FILE_BYTES_WRITTEN": "file_bytes_written",
}
_MAP_RECORDS = {"MAP_INPUT_RECORDS": "input_records", "MAP_OUTPUT_RECORDS": "output_records"}
_REDUCE_RECORDS = {
    "REDUCE_INPUT_RECORDS": "input_records",
    "REDUCE_OUTPUT_RECORDS": "output_records",
}
_JOB_ID = re.compile(r"job_[0-9]+_[0-9]+")
#: Names of the counters that become columns, without the counters of file systems.
COUNTERS = frozenset((*_COUNTERS, *_MAP_RECORDS, *_REDUCE_RECORDS))
_SOURCE_ID = re.compile(r"(?:task|attempt)_([0-9A-Za-z]+_[0-9]+)_[a-z]+_[0-9]+(?:_([0-9]+))?")


@dataclass(slots=True)
class Attempt:
    """Attempt of a task of any kind; times in milliseconds since 1970."""

    task: str
    number: int | None
    kind: str
    host: str | None = None
    rack: str | None = None
    start_ms: int | None = None
    input_done_ms: int | None = None
    sorted_ms: int | None = None
    finish_ms: int | None = None
    outcome: str | None = None
    locality: str | None = None
    #: Values of counters, by column of the table of attempts; None without counters.
    counts: dict[str, int] | None = None
    cpu_s: float | None = None
    #: Values of counters, by Hadoop's name of the counter; None if the reader does not store them.
    counters: dict[str, int] | None = None
    #: Outcome as the source writes it, if it is not a known outcome of Hadoop; else empty.
    odd_end: str = ""


@dataclass
class Conf:
    """Settings of a job from its configuration: name, user, queue, and input and output paths."""

    name: str | None = None
    user: str | None = None
    queue: str | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass
class Job:
    """Job of a Hadoop history with its attempts; times in milliseconds since 1970."""

    source_id: str
    line: int = 0
    name: str | None = None
    user: str | None = None
    queue: str | None = None
    submit_ms: int | None = None
    launch_ms: int | None = None
    finish_ms: int | None = None
    outcome: str | None = None
    maps: int | None = None
    reduces: int | None = None
    #: Sizes in bytes from the counters of the whole job, by column of the table of jobs.
    counts: dict[str, int] = field(default_factory=dict)
    attempts: dict[str, Attempt] = field(default_factory=dict)
    #: Start of each task in ms since 1970, by the task's name.
    task_starts_ms: dict[str, int] = field(default_factory=dict)
    conf: Conf | None = None


def job_id(text: str) -> str | None:
    """Return the job id in a text, such as the name of a file; None if there is none."""
    found = _JOB_ID.search(text)
    return found.group() if found else None


def job_of(task_or_attempt: str) -> str | None:
    """Return the job id from the id of a task or attempt; None if the id is not valid."""
    found = _SOURCE_ID.fullmatch(task_or_attempt)
    return f"job_{found.group(1)}" if found else None


def attempt_number(attempt: str) -> int | None:
    """Return the number of an attempt within its task, from its id; None if the id has none."""
    found = _SOURCE_ID.fullmatch(attempt)
    number = int(found.group(2)) if found and found.group(2) else None
    return number if number is None or number < 1 << 32 else None


def kind_of(task_type: object) -> str | None:
    """Return the kind of a task, such as ``map``, from Hadoop's task type; None if unknown."""
    return _KINDS.get(str(task_type))


def outcome_of(status: object) -> str | None:
    """Return the outcome of an attempt or job from Hadoop's status.

    The result is None if the status is unknown, or means that the attempt or job has not ended.
    """
    return _OUTCOMES.get(str(status))


def text_of(value: object) -> str | None:
    """Return at most 4,096 characters of a text; None if the value is empty or no text."""
    if not isinstance(value, str) or not value:
        return None
    return value[:_MOST_TEXT].encode(errors="replace").decode()


def count_of(value: object) -> int | None:
    """Return a count or size from a JSON value; None for −1 and null, which mean a missing value.

    Raises ``ValueError`` for other values than −1, null, and whole numbers from 0 to 2^63 − 1.
    """
    if value is None or (value == -1 and not isinstance(value, bool)):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_COUNT:
        raise ValueError(
            f"a count or size is {clean(str(value), 40)}; allowed: -1 (missing) to 2^63 - 1"
        )
    return value


def ms_of(value: object) -> int | None:
    """Return a time in ms since 1970 from a JSON value; None for −1, 0 and null (missing).

    Raises ``ValueError`` for other values than −1, 0, null, and whole numbers that mean a time from
    1980 to 2100.
    """
    if value is None or (value in {-1, 0} and not isinstance(value, bool)):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"a time is {clean(str(value), 40)}, not ms since 1970")
    if not EARLIEST_MS <= value <= LATEST_MS:
        raise ValueError(f"a time is {clean(str(value), 40)}, not ms since 1970 (1980 to 2100)")
    return value


def host_of(text: str) -> tuple[str | None, str | None]:
    """Return (rack, host) from ``/rack/host`` or ``host``, without backslashes; None if missing."""
    plain = text.replace("\\", "")
    rack, _, host = plain.rpartition("/")
    return text_of(rack.lstrip("/")), text_of(host)


def odd_end(status: object) -> str:
    """Return ``status`` as text if it is not a known status of Hadoop; else an empty text."""
    word = "" if status is None else str(status)
    return "" if word in _OUTCOMES or word in _NOT_ENDED else word


def unread(counters: Iterable[str], kind: str) -> list[str]:
    """Return the names of counters that have no column in the table of attempts.

    ``kind`` is the kind of the attempt (``map``, ``reduce`` …), because some counters have a column
    only for one kind.
    """
    records = {"map": _MAP_RECORDS, "reduce": _REDUCE_RECORDS}.get(kind, {})
    return [
        name
        for name in counters
        if name not in _COUNTERS
        and name not in records
        and name != "CPU_MILLISECONDS"
        and (name.startswith(_LOCAL) or not name.endswith(("_BYTES_READ", "_BYTES_WRITTEN")))
    ]


def columns_of(counters: Mapping[str, int], kind: str) -> dict[str, int]:
    """Return the values of columns, by the column's name, from the counters of an attempt or job.

    ``counters`` has Hadoop's counters by name; ``kind`` is the kind of the attempt, empty for a
    whole job. Negative counters mean unknown values and are left out.
    """
    found: dict[str, int] = {}
    records = {"map": _MAP_RECORDS, "reduce": _REDUCE_RECORDS}.get(kind, {})
    for name, value in counters.items():
        if name in _COUNTERS or name in records:
            found[_COUNTERS.get(name) or records[name]] = value
        system, _, what = name.partition("_BYTES_")
        if system != _LOCAL and what in {"READ", "WRITTEN"}:
            column = "input_bytes" if what == "READ" else "output_bytes"
            found[column] = found.get(column, 0) + value
    return {name: value for name, value in found.items() if 0 <= value <= _MOST_COUNT}


def note_counters(
    account: Account, file: str, line: int, counters: Mapping[str, int], kind: str
) -> None:
    """Report to ``account`` the counters of an attempt that have no column or are negative.

    ``counters`` has Hadoop's counters by name; ``kind`` is the kind of the attempt (``map``,
    ``reduce`` …); ``file`` and ``line`` are the place of the attempt.
    """
    names = unread(counters, kind)
    if names:
        reason = "counter of an attempt for which there is no column"
        account.note(file, line, reason, names[0], len(names), "it is left out")
    for name, value in counters.items():
        if value < 0 and name not in names:
            reason = "counter of an attempt that is negative"
            found = f"{name}={value}"
            account.note(file, line, reason, found, consequence="its value is not known (null)")


def write_job(job: Job, writer: Writer, account: Account, file: str, confs: Confs) -> bool:
    """Add a job and its attempts to the tables of ``writer``; return False if it cannot be used.

    A job cannot be used if its id is not new or it has no time. ``file`` is the name of the
    history, for reports in ``account``; ``confs`` has the configurations that were given together
    with the history.
    """
    conf = confs.take(job.source_id) or job.conf
    if not writer.new_id(job.source_id):
        account.bad(file, job.line, "job with the id of an earlier job", job.source_id)
        return False
    submit_ms = _submitted(job)
    if submit_ms is None:
        account.bad(
            file,
            job.line,
            "job without any time of submission, launch, start or end",
            job.source_id,
        )
        return False
    if job.submit_ms is None:
        reason = "job without a time of submission: its launch, first start or end is used"
        account.note(file, job.line, reason, job.source_id)
    number = writer.next_job()
    totals = _totals(job)
    writer.add(
        "jobs",
        {
            "job": number,
            "name": job.name or (conf.name if conf else None),
            "source_id": job.source_id,
            "user": job.user or (conf.user if conf else None),
            "queue": job.queue or (conf.queue if conf else None),
            "framework": "MapReduce",
            "submit_s": writer.seconds(submit_ms),
            "launch_s": writer.seconds(job.launch_ms),
            "finish_s": writer.seconds(job.finish_ms),
            "outcome": job.outcome,
            "maps": job.maps,
            "reduces": job.reduces,
            **totals,
        },
    )
    for attempt in job.attempts.values():
        writer.add("attempts", _row(number, attempt, writer))
        writer.host(attempt.rack, attempt.host)
    _note_order(job, account, file)
    _note_end(job, account, file)
    _note_outcomes(job, account, file)
    if conf is not None:
        _write_files(number, conf, totals, writer)
    return True


def _submitted(job: Job) -> int | None:
    if job.submit_ms is not None:
        return job.submit_ms
    if job.launch_ms is not None:
        return job.launch_ms
    starts = [a.start_ms for a in job.attempts.values() if a.start_ms is not None]
    return min(starts, default=job.finish_ms)


def _totals(job: Job) -> dict[str, Any]:
    """Return the bytes and task-seconds of a job, by column of the table of jobs."""
    last = _last_success(job)
    found: dict[str, Any] = {}
    for column in ("input_bytes", "map_output_bytes", "shuffle_bytes", "output_bytes"):
        if column in job.counts:
            found[column] = job.counts[column]
        else:
            known = [a.counts[column] for a in last if a.counts and column in a.counts]
            found[column] = sum(known) if known else None
    if job.reduces == 0 and found["shuffle_bytes"] is None:
        found["shuffle_bytes"] = 0
    for kind in ("map", "reduce"):
        spans = [
            a.finish_ms - a.start_ms
            for a in job.attempts.values()
            if a.kind == kind and a.outcome == "succeeded" and a.start_ms and a.finish_ms
        ]
        known = [span for span in spans if span >= 0]
        found[f"{kind}_s"] = sum(known) / 1000 if known else None
    return found


def _last_success(job: Job) -> list[Attempt]:
    """Return the last successful attempt of each map and reduce task: Hadoop counts only these."""
    last: dict[str, Attempt] = {}
    for attempt in job.attempts.values():
        if attempt.kind in {"map", "reduce"} and attempt.outcome == "succeeded":
            before = last.get(attempt.task)
            if before is None or (attempt.finish_ms or 0) >= (before.finish_ms or 0):
                last[attempt.task] = attempt
    return list(last.values())


def _row(number: int, attempt: Attempt, writer: Writer) -> dict[str, Any]:
    return {
        "job": number,
        "task": attempt.task,
        "attempt": attempt.number,
        "kind": attempt.kind,
        "host": attempt.host,
        "rack": attempt.rack,
        "start_s": writer.seconds(attempt.start_ms),
        "input_done_s": writer.seconds(attempt.input_done_ms),
        "sorted_s": writer.seconds(attempt.sorted_ms),
        "finish_s": writer.seconds(attempt.finish_ms),
        "outcome": attempt.outcome,
        "locality": attempt.locality,
        "cpu_s": attempt.cpu_s,
        **(attempt.counts or {}),
    }


def _note_order(job: Job, account: Account, file: str) -> None:
    """Report to ``account`` times of a job in an impossible order; the tables have them unchanged.

    ``file`` is the name of the history.
    """
    if job.submit_ms and job.finish_ms and job.finish_ms < job.submit_ms:
        reason = "job that ends before it is submitted: its times are stored unchanged"
        account.note(file, job.line, reason, job.source_id)
    found: dict[str, list[str]] = {}
    for a in job.attempts.values():
        if a.start_ms is None:
            continue
        if a.finish_ms is not None and a.finish_ms < a.start_ms:
            found.setdefault("ends before it starts", []).append(a.task)
        if a.start_ms < (job.submit_ms or 0):
            found.setdefault("starts before its job", []).append(a.task)
        elif a.start_ms < job.task_starts_ms.get(a.task, 0):
            found.setdefault("starts before its task", []).append(a.task)
    for what, tasks in found.items():
        reason = f"attempt that {what}: its times are stored unchanged"
        account.note(file, job.line, reason, tasks[0], len(tasks))


def _note_end(job: Job, account: Account, file: str) -> None:
    if job.outcome is None or job.finish_ms is None:
        account.note(file, job.line, "job without an outcome or without an end", job.source_id)


def _note_outcomes(job: Job, account: Account, file: str) -> None:
    """Report to ``account`` the attempts of a job that do not count in the job's totals.

    These attempts have rows in the table of attempts. ``file`` is the name of the history.
    """
    last = {id(attempt) for attempt in _last_success(job)}
    lost = [a.task for a in job.attempts.values() if a.outcome in {"failed", "killed"}]
    open_ = [a for a in job.attempts.values() if a.outcome is None]
    twice = [
        a.task
        for a in job.attempts.values()
        if a.outcome == "succeeded" and a.kind in {"map", "reduce"} and id(a) not in last
    ]
    then = "it has a row, but its job's bytes and task-seconds come from attempts that succeeded"
    if lost:
        reason = "attempt that failed or was killed"
        account.note(file, job.line, reason, lost[0], len(lost), then)
    if open_:
        reason = "attempt whose outcome is missing or unknown"
        account.note(file, job.line, reason, open_[0].odd_end or open_[0].task, len(open_), then)
    if twice:
        then = "it has a row, but its job's bytes come from the later attempt"
        reason = "attempt that succeeded before another attempt of its task"
        account.note(file, job.line, reason, twice[0], len(twice), then)


def _write_files(number: int, conf: Conf, totals: Mapping[str, Any], writer: Writer) -> None:
    for access, paths, column in (
        ("read", conf.inputs, "input_bytes"),
        ("write", conf.outputs, "output_bytes"),
    ):
        size = totals[column] if len(paths) == 1 else None
        for path in paths:
            writer.add("files", {"job": number, "path": path, "access": access, "bytes": size})


_NAMES = ("mapreduce.job.name", "mapred.job.name")
_USERS = ("mapreduce.job.user.name", "user.name")
_QUEUES = ("mapreduce.job.queuename", "mapred.job.queue.name")
_INPUTS = ("mapreduce.input.fileinputformat.inputdir", "mapred.input.dir")
_OUTPUTS = ("mapreduce.output.fileoutputformat.outputdir", "mapred.output.dir")
#: Names of Hadoop's settings that the import reads from the configuration of a job.
WANTED = frozenset((*_NAMES, *_USERS, *_QUEUES, *_INPUTS, *_OUTPUTS))
_COMMA = re.compile(r"(?<!\\),")
_MOST_PATHS = 10_000


def conf_of(settings: Mapping[str, object]) -> Conf:
    """Return the settings of a job that the import uses; ``settings`` are all settings by name."""
    return Conf(
        name=_first(settings, _NAMES),
        user=_first(settings, _USERS),
        queue=_first(settings, _QUEUES),
        inputs=tuple(_paths(_first(settings, _INPUTS))),
        outputs=tuple(_paths(_first(settings, _OUTPUTS))),
    )


def _first(settings: Mapping[str, object], names: Iterable[str]) -> str | None:
    return next((text for name in names if (text := text_of(settings.get(name)))), None)


def _paths(text: str | None) -> Iterator[str]:
    """Yield the paths in a text, separated by commas; a comma in a path has a backslash before."""
    for path in _COMMA.split(text or "")[:_MOST_PATHS]:
        if path.strip():
            yield path.strip().replace("\\,", ",")


class Confs:
    """Configurations of jobs that were given together with histories, by the id of the job."""

    def __init__(self) -> None:
        self._confs: dict[str, tuple[str, Conf]] = {}
        self._taken: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._confs)

    def add(self, job: str, file: str, conf: Conf) -> None:
        """Store the configuration of a job, with the name of its file."""
        self._confs[job] = (file, conf)

    def take(self, job: str) -> Conf | None:
        """Return the configuration of a job, or None; ``left`` no longer lists this job."""
        self._taken.add(job)
        return self._confs[job][1] if job in self._confs else None

    def left(self) -> list[str]:
        """Return the names of the configuration files whose jobs were never passed to ``take``."""
        return [file for job, (file, _) in self._confs.items() if job not in self._taken]
