"""Spark event logs: one JSON object per line, one application per file (Spark 1.2 to 3.5).

Each job of the application (the work of an action) becomes a job of the trace with the name of the
application; the stages of a job form a graph. A stage belongs to the job that ran the stage; later
jobs that reuse the output have no row for the stage. The bytes of a stage or job are the sum over
all task attempts, including failed attempts, as in Spark's own totals. A value missing in a task's
metrics counts as zero; if a task has no metrics, all values are unknown. Bytes that a task writes
for a shuffle are in ``file_bytes_written``, because they go to the local disk.

Logs of versions before 1.4 have no times of jobs: the first submission and the last end among the
job's stages are used. Logs up to version 1.4 also lack the dependencies of stages; logs of version
2.1 have them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.traces.hadoop import Confs, count_of, ms_of, text_of
from eastwest.traces.source import Source
from eastwest.traces.write import Writer
from eastwest.units import clean

#: Maximum length of a line in bytes; the event at the start of a job describes all stages of the
#: job, so its line is long.
MOST_LINE_BYTES = 16 << 20
#: Maximum number of ended jobs in memory; they stay there because events of tasks may follow.
_HELD = 256
_STARTS = (b'{"Event":"SparkListener', b'{"Event":"org.apache.spark.')


@dataclass
class Stage:
    """Stage of a Spark job: times in ms since 1970, and sums over the stage's tasks."""

    number: int
    name: str | None = None
    after: list[int] | None = None
    tasks: int | None = None
    submit_ms: int | None = None
    finish_ms: int | None = None
    outcome: str | None = None
    #: Whether the stage was submitted; Spark skips a stage whose output already exists.
    ran: bool = False
    #: Whether a task of the stage has metrics; otherwise the bytes of the stage are unknown.
    measured: bool = False
    #: Sum of the durations of the tasks that succeeded, in ms.
    task_ms: int = 0
    cpu_ns: int | None = None
    bytes: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("input_bytes", "shuffle_bytes", "shuffle_written_bytes", "output_bytes"), 0
        )
    )


@dataclass
class Job:
    """Job of a Spark application with its stages by number; times in ms since 1970."""

    number: int
    source_id: str
    line: int
    name: str | None = None
    queue: str | None = None
    submit_ms: int | None = None
    finish_ms: int | None = None
    outcome: str | None = None
    stages: dict[int, Stage] = field(default_factory=dict)
    ended: bool = False


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file may be a Spark event log."""
    first = start.lstrip().replace(b'" : "', b'":"').replace(b'": "', b'":"').replace(b"{ ", b"{")
    return first.startswith(_STARTS)


def read(source: Source, writer: Writer, account: Account, _: Confs) -> None:
    """Read the jobs of a Spark event log, and add them to the tables of ``writer``.

    Problems are reported to ``account``.
    """
    reader = _Reader(source, writer, account)
    number = 0
    for number, raw in source.lines(MOST_LINE_BYTES):
        if not raw.strip():
            continue
        account.more()
        try:
            event = json.loads(raw)
        except (ValueError, RecursionError):
            account.broken(source.name, number, "is not a JSON object")
            continue
        try:
            reader.take(number, event)
        except InputError:
            raise  # the message already has file and line
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            account.bad(source.name, number, "is not an event of Spark", str(error))
    account.end(source.name, number, source.cut)
    reader.end(number)


class _Reader:
    def __init__(self, source: Source, writer: Writer, account: Account) -> None:
        self.name = source.name
        self.writer = writer
        self.account = account
        self.app = source.path.name
        self.app_name: str | None = None
        self.user: str | None = None
        self.queue: str | None = None
        self.ended = False
        self.jobs: dict[int, Job] = {}
        #: Job that runs each stage, by the number of the stage.
        self.owner: dict[int, Job] = {}
        #: Number of jobs that started so far.
        self.seen = 0

    def take(self, line: int, event: dict[str, Any]) -> None:
        """Process the event in line ``line`` of the log; ended tasks are written at once.

        Raises ``KeyError``, ``TypeError``, ``ValueError`` or ``AttributeError`` for a malformed
        event.
        """
        kind = event["Event"]
        if kind == "SparkListenerTaskEnd":
            self._task(line, event)
        elif kind == "SparkListenerJobStart":
            self._job_start(line, event)
        elif kind == "SparkListenerJobEnd":
            self._job_end(event)
        elif kind in {"SparkListenerStageSubmitted", "SparkListenerStageCompleted"}:
            self._stage(event["Stage Info"], kind.endswith("Completed"))
        elif kind == "SparkListenerApplicationStart":
            self.app = text_of(event.get("App ID")) or self.app
            self.app_name = text_of(event["App Name"])
            self.user = text_of(event.get("User"))
        elif kind == "SparkListenerApplicationEnd":
            self.ended = True
        elif kind == "SparkListenerEnvironmentUpdate":
            settings = event.get("Spark Properties") or {}
            self.queue = text_of(settings.get("spark.yarn.queue"))
        elif kind == "SparkListenerExecutorAdded":
            self.writer.host(None, text_of(event["Executor Info"].get("Host")))
        elif not isinstance(kind, str):
            raise ValueError("an event without a name")
        else:
            then = "it is left out: the import does not use events of this kind"
            short = clean(kind.rpartition(".")[2].removeprefix("SparkListener"), 60)
            self.account.note(self.name, line, f"event {short}", consequence=then)

    def _job_start(self, line: int, event: dict[str, Any]) -> None:
        theirs = _number(event["Job ID"])
        source_id = f"{self.app}/{theirs}"
        submit_ms = ms_of(event.get("Submission Time"))
        stages = {}
        for info in event.get("Stage Infos") or []:
            stage = _described(info)
            stages[stage.number] = stage
        for number in event["Stage IDs"]:
            stages.setdefault(_number(number), Stage(_number(number)))
        if not self.writer.new_id(source_id):
            self.account.bad(self.name, line, "job with the id of an earlier job", source_id)
            return
        properties = event.get("Properties") or {}
        self.jobs[theirs] = Job(
            number=self.writer.next_job(),
            source_id=source_id,
            line=line,
            name=self.app_name,
            queue=text_of(properties.get("spark.yarn.queue")) or self.queue,
            submit_ms=submit_ms,
            stages=stages,
        )
        self.seen += 1

    def _job_end(self, event: dict[str, Any]) -> None:
        job = self.jobs.get(_number(event["Job ID"]))
        if job is None:
            raise ValueError("end of a job that did not start")
        job.finish_ms = ms_of(event.get("Completion Time"))
        result = str(event["Job Result"]["Result"])
        job.outcome = "succeeded" if result == "JobSucceeded" else "failed"
        job.ended = True
        held = [number for number, other in self.jobs.items() if other.ended]
        if len(held) > _HELD:
            self._write(self.jobs.pop(held[0]))

    def _stage(self, info: dict[str, Any], completed: bool) -> None:
        found = _described(info)
        job = self._runner(found.number)
        if job is None:
            raise ValueError(f"stage {found.number} belongs to a job that did not start")
        stage = job.stages[found.number]
        stage.ran = True
        stage.name, stage.tasks = found.name, found.tasks
        stage.after = found.after if found.after is not None else stage.after
        if stage.submit_ms is None:
            stage.submit_ms = found.submit_ms
        if completed:
            stage.finish_ms = found.finish_ms
            stage.outcome = "failed" if info.get("Failure Reason") else "succeeded"

    def _runner(self, stage: int) -> Job | None:
        """Return the job that runs the stage with number ``stage``; None if no job needs it.

        When the first event of the stage is read, the first unfinished job that needs the stage is
        chosen, or else the first job that needs it.
        """
        if stage not in self.owner:
            needing = [job for job in self.jobs.values() if stage in job.stages]
            running = [job for job in needing if not job.ended] or needing
            if not running:
                return None
            self.owner[stage] = running[0]
        return self.owner[stage]

    def _task(self, line: int, event: dict[str, Any]) -> None:
        stage_number, info = _number(event["Stage ID"]), event["Task Info"]
        job = self._runner(stage_number)
        if job is None:
            raise ValueError(f"a task of stage {stage_number}, which belongs to no job")
        stage = job.stages[stage_number]
        stage.ran = True
        start_ms, finish_ms = ms_of(info["Launch Time"]), ms_of(info.get("Finish Time"))
        measured = _measured(event.get("Task Metrics"))
        cpu_ns = _cpu_ns(event.get("Task Metrics"))
        host = text_of(info.get("Host"))
        outcome = _ended(event, info)
        self.writer.host(None, host)
        self.writer.add(
            "attempts",
            {
                "job": job.number,
                "task": f"{stage_number}/{_number(info['Index'])}",
                "attempt": _number(info.get("Attempt", 0)),
                "kind": "task",
                "stage": stage_number,
                "host": host,
                "start_s": self.writer.seconds(start_ms),
                "finish_s": self.writer.seconds(finish_ms),
                "outcome": outcome,
                "locality": text_of(info.get("Locality")),
                "cpu_s": _seconds(cpu_ns),
                **{name: value for name, value in measured.items() if name != "written"},
                "file_bytes_written": measured.get("written"),
            },
        )
        self._note_task(line, outcome, measured)
        _add(stage, measured, cpu_ns)
        if outcome == "succeeded" and start_ms and finish_ms and finish_ms >= start_ms:
            stage.task_ms += finish_ms - start_ms

    def _note_task(self, line: int, outcome: str, measured: dict[str, int]) -> None:
        if not measured:
            then = "its bytes are not known (null), and not in the sums of its stage and job"
            self.account.note(self.name, line, "task without metrics", consequence=then)
        if outcome != "succeeded":
            then = "it has a row; the sums of its stage and job include its bytes, but not its time"
            reason = "task that failed or was killed"
            self.account.note(self.name, line, reason, consequence=then)

    def _write(self, job: Job) -> None:
        ran = {number: stage for number, stage in job.stages.items() if stage.ran}
        submits = [s.submit_ms for s in ran.values() if s.submit_ms is not None]
        ends = [s.finish_ms for s in ran.values() if s.finish_ms is not None]
        submit_ms = job.submit_ms or min(submits, default=None)
        for number in [n for n, owner in self.owner.items() if owner is job]:
            del self.owner[number]
        if submit_ms is None:
            self.account.bad(self.name, job.line, "job without any time", job.source_id)
            return
        if not job.ended:
            reason = "job without an outcome"
            self.account.note(self.name, job.line, reason, job.source_id)
        finish_ms = job.finish_ms or (max(ends, default=None) if job.ended else None)
        known = [stage for stage in ran.values() if stage.measured]
        totals = {
            name: sum(stage.bytes[name] for stage in known) if known else None
            for name in ("input_bytes", "shuffle_bytes", "output_bytes")
        }
        self.writer.add(
            "jobs",
            {
                "job": job.number,
                "name": job.name,
                "source_id": job.source_id,
                "user": self.user,
                "queue": job.queue,
                "framework": "Spark",
                "submit_s": self.writer.seconds(submit_ms),
                "launch_s": self.writer.seconds(min(submits, default=None)),
                "finish_s": self.writer.seconds(finish_ms),
                "outcome": job.outcome,
                **totals,
            },
        )
        skipped = len(job.stages) - len(ran)
        if skipped:
            then = "it has no row: its output already existed, or its job ended earlier"
            reason = "stage that did not run"
            self.account.note(self.name, job.line, reason, job.source_id, skipped, then)
        for stage in ran.values():
            self._write_stage(job, stage, ran)

    def _write_stage(self, job: Job, stage: Stage, ran: Iterable[int]) -> None:
        there = set(ran)
        self.writer.add(
            "stages",
            {
                "job": job.number,
                "stage": stage.number,
                "name": stage.name,
                "after": None if stage.after is None else [n for n in stage.after if n in there],
                "tasks": stage.tasks,
                "submit_s": self.writer.seconds(stage.submit_ms),
                "finish_s": self.writer.seconds(stage.finish_ms),
                "outcome": stage.outcome,
                **(stage.bytes if stage.measured else {}),
                "task_s": stage.task_ms / 1000,
                "cpu_s": _seconds(stage.cpu_ns),
            },
        )

    def end(self, line: int) -> None:
        """Write the jobs that are still in memory; report a log that is incomplete or has no jobs.

        ``line`` is the number of the last line of the log.
        """
        for number in list(self.jobs):
            self._write(self.jobs.pop(number))
        if not self.ended:
            reason = "log without the end of its application: the file may be truncated"
            self.account.note(self.name, line, reason)
        if not self.seen:
            self.account.note(self.name, 0, "the application ran no job", self.app)


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise ValueError(f"an id or count is {value!r:.40}; allowed: 0 to 2^32 - 1")
    return value


def _described(info: dict[str, Any]) -> Stage:
    after = info.get("Parent IDs")
    return Stage(
        number=_number(info["Stage ID"]),
        name=text_of(info.get("Stage Name")),
        after=None if after is None else [_number(number) for number in after],
        tasks=_number(info["Number of Tasks"]),
        submit_ms=ms_of(info.get("Submission Time")),
        finish_ms=ms_of(info.get("Completion Time")),
    )


def _ended(event: dict[str, Any], info: dict[str, Any]) -> str:
    reason = str((event.get("Task End Reason") or {}).get("Reason"))
    if info.get("Killed") or reason in {"TaskKilled", "TaskCommitDenied"}:
        return "killed"
    return "failed" if info.get("Failed") or reason not in {"Success", "None"} else "succeeded"


def _measured(metrics: Any) -> dict[str, int]:
    """Return the metrics of a task by column of the table of attempts; empty without metrics.

    The additional key ``written`` has the bytes that the task writes for a shuffle.
    """
    if not isinstance(metrics, dict) or not metrics:
        return {}
    taken = metrics.get("Input Metrics") or {}
    given = metrics.get("Output Metrics") or {}
    fetched = metrics.get("Shuffle Read Metrics") or {}
    written = metrics.get("Shuffle Write Metrics") or {}
    return {
        "input_bytes": _size(taken, "Bytes Read"),
        "input_records": _size(taken, "Records Read"),
        "shuffle_bytes": _size(fetched, "Remote Bytes Read") + _size(fetched, "Local Bytes Read"),
        "output_bytes": _size(given, "Bytes Written"),
        "output_records": _size(given, "Records Written"),
        "written": _size(written, "Shuffle Bytes Written"),
    }


def _size(metrics: dict[str, Any], name: str) -> int:
    return count_of(metrics.get(name)) or 0


def _add(stage: Stage, measured: dict[str, int], cpu_ns: int | None) -> None:
    if not measured:
        return
    stage.measured = True
    if cpu_ns is not None:
        stage.cpu_ns = (stage.cpu_ns or 0) + cpu_ns
    for name in ("input_bytes", "shuffle_bytes", "output_bytes"):
        stage.bytes[name] += measured[name]
    stage.bytes["shuffle_written_bytes"] += measured["written"]


def _cpu_ns(metrics: Any) -> int | None:
    return count_of(metrics.get("Executor CPU Time")) if isinstance(metrics, dict) else None


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
