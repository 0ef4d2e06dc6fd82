"""Job traces of Hadoop's tool Rumen: consecutive job objects in JSON.

A job contains its tasks, a task contains its attempts; −1 means a missing value. Nothing separates
two jobs, and a job may have one line or thousands of lines. A job ends where an opening brace
follows a closing brace; inside a job, a comma is between these braces. Only one job is in memory at
a time, with only the used fields of its attempts.

Fields are those of ``LoggedJob``, ``LoggedTask`` and ``LoggedTaskAttempt`` of Hadoop 0.21 to 3.4.
Older files have a backslash before dots in names of hosts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.traces import hadoop
from eastwest.traces.hadoop import Attempt, Confs, Job
from eastwest.traces.source import Source
from eastwest.traces.write import Writer
from eastwest.units import size

#: Maximum length in bytes of the JSON text of a job: about 50,000 attempts.
MOST_JOB_BYTES = 64 << 20
_BETWEEN = re.compile(rb"\}\s*\{")
_COUNTS = {
    "hdfsBytesRead": "input_bytes",
    "hdfsBytesWritten": "output_bytes",
    "fileBytesRead": "file_bytes_read",
    "fileBytesWritten": "file_bytes_written",
    "mapOutputBytes": "map_output_bytes",
    "reduceShuffleBytes": "shuffle_bytes",
    "spilledRecords": "spilled_records",
}
_RECORDS = {
    "map": {"mapInputRecords": "input_records", "mapOutputRecords": "output_records"},
    "reduce": {"reduceInputRecords": "input_records", "reduceOutputRecords": "output_records"},
}
_TASKS = ("mapTasks", "reduceTasks", "otherTasks")


def read(source: Source, writer: Writer, account: Account, confs: Confs) -> None:
    """Read the jobs of a file of Rumen, and add them to the tables of ``writer``.

    Problems are reported to ``account``; ``confs`` has configurations of jobs.
    """
    line = 0
    for line, text in _objects(source):
        account.more()
        try:
            found = json.loads(text, object_hook=_Hook(writer, account, source.name, line))
            job = _job(found, line)
        except InputError:
            raise  # the whole trace exceeds a limit, so other jobs cannot be read either
        except (ValueError, RecursionError) as error:
            _tell(source, account, line, text, error)
            continue
        hadoop.write_job(job, writer, account, source.name, confs)
    account.end(source.name, line, source.cut)


def _tell(source: Source, account: Account, line: int, text: bytes, error: Exception) -> None:
    if isinstance(error, json.JSONDecodeError):
        at = line + text.count(b"\n", 0, error.pos)
        account.broken(source.name, at, f"is not a JSON object: {error.msg}")
    elif isinstance(error, RecursionError):
        account.bad(source.name, line, "is nested more deeply than a job of Rumen")
    else:
        account.bad(source.name, line, "is not a job of Rumen", str(error))


def _objects(source: Source) -> Iterator[tuple[int, bytes]]:
    """Yield (number of the first line, JSON text) of each job object of a file."""
    held = bytearray()
    line, looked = 1, 0
    while True:
        block = source.read()
        if not block:
            break
        held += block
        start = 0
        for found in _BETWEEN.finditer(held, max(0, looked)):
            end = found.start() + 1
            yield line, bytes(held[start:end])
            line += held.count(b"\n", start, end)
            start = end
        del held[:start]
        # The closing brace of a job may end this block, and the opening brace of the next job begin
        # the next block, so the search starts again at the last byte.
        looked = len(held.rstrip()) - 1
        if len(held) > MOST_JOB_BYTES:
            raise InputError(
                f"{source.name}:{line}: a job is longer than {size(MOST_JOB_BYTES)}, the maximum"
            )
    if held.strip():
        yield line, bytes(held)


class _Hook:
    """``object_hook`` for the JSON parser: replaces objects while the text of a job is parsed.

    An attempt becomes an ``Attempt``, so that its unused fields need no memory. Locations of data
    become None, and their hosts are added to ``writer``. Distributions become None. All other
    objects remain dictionaries.
    """

    def __init__(self, writer: Writer, account: Account, file: str, line: int) -> None:
        self._writer = writer
        self._account = account
        self._place = file, line

    def __call__(self, found: dict[str, Any]) -> Any:
        if "attemptID" in found:
            return _attempt(found)
        if "layers" in found:
            layers = found["layers"]
            if isinstance(layers, list) and len(layers) == 2:
                rack, host = (str(layer).replace("\\", "") for layer in layers)
                self._writer.host(hadoop.text_of(rack), hadoop.text_of(host))
            else:
                reason = "place of data that is not a pair of rack and host"
                self._account.note(*self._place, reason, consequence="it is left out")
            return None
        if "rankings" in found:
            reason = "distribution of attempts (rankings)"
            then = "it is left out: the attempts themselves are rows"
            self._account.note(*self._place, reason, consequence=then)
            return None
        return found


def _attempt(found: dict[str, Any]) -> Attempt:
    name = str(found["attemptID"])
    rack, host = hadoop.host_of(str(found.get("hostName") or ""))
    kind = "reduce" if "_r_" in name else "map"
    attempt = Attempt(
        task=name,
        number=hadoop.attempt_number(name),
        kind=kind,
        host=host,
        rack=rack,
        start_ms=hadoop.ms_of(found.get("startTime")),
        finish_ms=hadoop.ms_of(found.get("finishTime")),
        outcome=hadoop.outcome_of(found.get("result")),
    )
    attempt.odd_end = hadoop.odd_end(found.get("result"))
    attempt.input_done_ms = hadoop.ms_of(found.get("shuffleFinished"))
    attempt.sorted_ms = hadoop.ms_of(found.get("sortFinished"))
    counts = {}
    for theirs, column in (*_COUNTS.items(), *_RECORDS[kind].items()):
        count = hadoop.count_of(found.get(theirs))
        if count is not None:
            counts[column] = count
    attempt.counts = counts
    return attempt


def _job(found: Any, line: int) -> Job:
    if not isinstance(found, dict) or not isinstance(found.get("jobID"), str):
        raise ValueError("an object without jobID")
    conf = found.get("jobProperties")
    job = Job(
        source_id=str(hadoop.text_of(found["jobID"])),
        line=line,
        name=hadoop.text_of(found.get("jobName")),
        user=hadoop.text_of(found.get("user")),
        queue=hadoop.text_of(found.get("queue")),
        submit_ms=hadoop.ms_of(found.get("submitTime")),
        launch_ms=hadoop.ms_of(found.get("launchTime")),
        finish_ms=hadoop.ms_of(found.get("finishTime")),
        outcome=hadoop.outcome_of(found.get("outcome")),
        maps=_tasks(found.get("totalMaps")),
        reduces=_tasks(found.get("totalReduces")),
        conf=hadoop.conf_of(conf) if isinstance(conf, dict) and conf else None,
    )
    for group in _TASKS:
        tasks = found.get(group)
        if tasks is not None and not isinstance(tasks, list):
            raise ValueError(f"{group} is not a list")
        for task in tasks or []:
            _task(job, task)
    return job


def _tasks(value: object) -> int | None:
    count = hadoop.count_of(value)
    if count is not None and count >= 1 << 32:
        raise ValueError(f"a job has {count} tasks; at most {(1 << 32) - 1} are possible")
    return count


def _task(job: Job, task: Any) -> None:
    if not isinstance(task, dict) or not isinstance(task.get("taskID"), str):
        raise ValueError("a task without taskID")
    kind = hadoop.kind_of(task.get("taskType"))
    attempts = task.get("attempts")
    if not isinstance(attempts, list):
        raise ValueError("a task without a list of attempts")
    name = str(hadoop.text_of(task["taskID"]))
    start_ms = hadoop.ms_of(task.get("startTime"))
    if start_ms is not None:
        job.task_starts_ms[name] = start_ms
    for attempt in attempts:
        if not isinstance(attempt, Attempt):
            raise ValueError("an attempt without attemptID")
        key, attempt.task = attempt.task, name
        attempt.kind = kind or attempt.kind
        if key in job.attempts:
            key = f"{key} {len(job.attempts)}"
        job.attempts[key] = attempt
