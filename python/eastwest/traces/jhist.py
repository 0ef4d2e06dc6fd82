"""Job histories of Hadoop 2 and 3 (MRv2): ``*.jhist`` files, Avro in its JSON or binary form.

A file begins with the line ``Avro-Json`` or ``Avro-Binary`` and a line with the schema; records
follow. In JSON, each record is a line, and blank lines are between the records. In the binary form,
records follow each other in Avro's binary encoding, without the container of Avro files
(``EventWriter`` of Hadoop 2.8 to 3.4; binary is the default from 3.0 on). Times are milliseconds
since 1970. Times of jobs and containers come from the clock of the application master; the ends of
map, shuffle and sort in an attempt come from the clock of the node. A file has one job.

Events and fields are those of ``Events.avpr`` in Hadoop 3.4. Records are decoded with the schema in
the file. The schema must not be recursive, and items of arrays must not have a size of 0 bytes:
otherwise a small file could fill the memory.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from eastwest.errors import InputError
from eastwest.traces import hadoop
from eastwest.traces.hadoop import Attempt, Confs, Job
from eastwest.traces.source import Source
from eastwest.units import clean

if TYPE_CHECKING:
    from eastwest.account import Account
    from eastwest.traces.write import Writer

#: Maximum length in bytes of a line of a history in Avro's JSON, and of the first two lines of a
#: binary history together.
MOST_LINE_BYTES = 16 << 20
#: Maximum length in bytes of a record of a binary history.
MOST_RECORD_BYTES = 1 << 20
#: Maximum number of attempts of a job.
MOST_ATTEMPTS = hadoop.MOST_ATTEMPTS

JSON_HEADER = "Avro-Json"
BINARY_HEADER = "Avro-Binary"
#: Names of further counters that are stored with an attempt, though they have no column.
_KEPT = ("MAP_OUTPUT_MATERIALIZED_BYTES", "CPU_MILLISECONDS")
_CHUNK = 1 << 20
#: Maximum number of distinct names of counters without a column that are reported.
_MOST_NAMES = 10_000

#: A record: (line number, or number of the record in the binary form; kind of event; content). For
#: an unreadable record, the kind is empty and the content is a text with the reason.
Record = tuple[int, str, Any]


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file may be a job history of Hadoop 2 or 3."""
    return start.startswith((JSON_HEADER.encode(), BINARY_HEADER.encode()))


def read(source: Source, writer: Writer, account: Account, confs: Confs) -> None:
    """Read the job of a history file, and add it to the tables of ``writer``.

    Problems are reported to ``account``; ``confs`` has configurations of jobs.
    """
    walk = Walk()
    at = 0
    for at, kind, event in records(source):
        account.more()
        if not kind:
            account.broken(source.name, at, event)
            continue
        try:
            if not walk.take(kind, event):
                then = "it is left out: it contains no times or bytes of a job or an attempt"
                account.note(source.name, at, f"event {clean(kind, 60)}", consequence=then)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            account.bad(source.name, at, wrong(error))
        except TooManyError as error:
            raise InputError(f"{source.name}:{at}: {error}") from None
    account.end(source.name, at, source.cut)
    if walk.job is None:
        account.bad(source.name, at, "history without a record of a job")
        return
    _note_walk(walk, account, source.name)
    if walk.end is None:
        reason = "history without a record of the end of its job: the file may be truncated"
        account.note(source.name, at, reason)
    hadoop.write_job(walk.job, writer, account, source.name, confs)


def _note_walk(walk: Walk, account: Account, file: str) -> None:
    """Report to ``account`` restarts of the application master and counters that are left out.

    ``walk`` has read the whole history; ``file`` is the name of the history.
    """
    for name, times in walk.unread.items():
        reason = "counter of an attempt for which there is no column"
        account.note(file, 0, reason, name, times, "it is left out")
    if walk.masters > 1:
        reason = "the application master was started again"
        then = "attempts under every application master have rows"
        account.note(file, 0, reason, rows=walk.masters - 1, consequence=then)
    for attempt in walk.job.attempts.values() if walk.job else ():
        for name, value in (attempt.counters or {}).items():
            if value < 0:
                reason, found = "counter of an attempt that is negative", f"{name}={value}"
                account.note(file, 0, reason, found, consequence="its value is not known (null)")


def wrong(error: Exception) -> str:
    """Return the message for a malformed record of a job history; ``error`` is the reason."""
    return f"is not a record of a job history ({clean(str(error), 60)})"


def records(source: Source) -> Iterator[Record]:
    """Yield the records of a history, which follow two header lines.

    Raises ``InputError`` if the file is not a history of Hadoop 2 or 3.
    """
    if source.peek(len(BINARY_HEADER)) == BINARY_HEADER.encode():
        yield from _binary(source)
        return
    seen = 0
    for number, raw in source.lines(MOST_LINE_BYTES):
        try:
            line = raw.decode().strip()
        except UnicodeDecodeError:
            binary = "it looks like an Avro container file; " * raw.startswith(b"Obj")
            message = (
                f"is not text; {binary}a history must be in the form in which Hadoop writes it"
            )
            if seen == 0:
                raise InputError(f"{source.name}:{number}: {message}") from None
            yield number, "", message
            continue
        if not line:
            continue
        seen += 1
        if seen == 1 and line != JSON_HEADER:
            found = clean(line, 30)
            expected = f"starts with {found!r}, but a job history starts with {JSON_HEADER!r}"
            raise InputError(f"{source.name}:{number}: {expected}")
        if seen > 1:
            record = _parsed(number, line)
            if seen > 2 or (not record[1] and record[2] == _NO_JSON):
                yield record


_NO_JSON = "is not a JSON record; the file may have been cut off here"


def _parsed(number: int, line: str) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return number, "", _NO_JSON
    try:
        ((kind, event),) = record["event"].items()
        return number, kind.rpartition(".")[2] or "none", event
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return number, "", wrong(error)


def _binary(source: Source) -> Iterator[Record]:
    import fastavro  # noqa: PLC0415  only where a file needs it

    head = source.peek(MOST_LINE_BYTES)
    start = head.find(b"\n") + 1
    end = head.find(b"\n", start) + 1
    if head[:start].strip() != BINARY_HEADER.encode() or not end:
        raise InputError(
            f"{source.name}: is not a complete binary job history: line 1 must be {BINARY_HEADER} "
            "and line 2 the Avro schema; the file may be truncated"
        )
    schema = _schema(source.name, head[start:end])
    _drop(source, end)
    buffer, count, more = b"", 0, True
    while buffer or more:
        stream = io.BytesIO(buffer)
        while True:
            began = stream.tell()
            if began == len(buffer):
                break
            try:
                record = fastavro.schemaless_reader(stream, schema, None, return_record_name=True)
            except EOFError:
                break
            except Exception as error:
                yield count + 1, "", f"is not a record of its schema ({clean(str(error), 60)})"
                return
            count += 1
            yield _named(count, record)
        buffer = buffer[began:]
        block = source.read(_CHUNK)
        more = bool(block)
        if len(buffer) > MOST_RECORD_BYTES or (buffer and not more):
            yield (
                count + 1,
                "",
                (
                    f"is incomplete, or longer than {MOST_RECORD_BYTES:,} bytes, the limit "
                    "for a record"
                ),
            )
            return
        buffer += block


def _drop(source: Source, length: int) -> None:
    while length:
        length -= len(source.read(length))


def _named(count: int, record: Any) -> Record:
    try:
        kind, event = record["event"]
        return count, str(kind).rpartition(".")[2] or "none", event
    except (KeyError, TypeError, ValueError) as error:
        return count, "", wrong(error)


def _schema(name: str, text: bytes) -> Any:
    import fastavro  # noqa: PLC0415

    try:
        found = json.loads(text)
        if _least(found, {}, ()) == 0:
            raise ValueError("its records have a size of 0 bytes")
        return fastavro.parse_schema(found)
    except Exception as error:
        said = clean(str(error), 80)
        raise InputError(f"{name}:2: is not a schema of a job history ({said})") from None


def _least(schema: Any, named: dict[str, int], inside: tuple[str, ...]) -> int:
    """Return the minimum size in bytes of an encoded value of an Avro schema.

    ``named`` has the sizes of named types and is extended; ``inside`` are the names of the
    enclosing records. Raises ``ValueError`` for recursive types, and for arrays whose items can
    have 0 bytes.
    """
    if isinstance(schema, list):
        return 1 + min((_least(branch, named, inside) for branch in schema), default=0)
    if isinstance(schema, str):
        short = schema.rpartition(".")[2]
        if short in inside:
            raise ValueError(f"{short} contains itself")
        return named.get(short, 0 if schema == "null" else 1)
    kind = schema["type"]
    if kind in {"record", "error"}:
        short = str(schema["name"]).rpartition(".")[2]
        fields = (_least(f["type"], named, (*inside, short)) for f in schema["fields"])
        named[short] = sum(fields)
        return named[short]
    if kind == "fixed":
        named[str(schema["name"]).rpartition(".")[2]] = int(schema["size"])
        return int(schema["size"])
    if kind in {"array", "map"}:
        held = schema["items" if kind == "array" else "values"]
        if _least(held, named, inside) == 0 and kind == "array":
            raise ValueError("the items of an array have a size of 0 bytes")
        return 1
    return 1 if kind == "enum" else _least(kind, named, inside)


class TooManyError(Exception):
    """Error for a history with more than ``MOST_ATTEMPTS`` attempts."""


class Walk:
    """Builds a ``Job`` from the records of its history, which ``take`` processes one by one."""

    def __init__(self) -> None:
        self.job: Job | None = None
        #: Start time of the job's last application master in ms since 1970; None before the first.
        self.master_ms: int | None = None
        #: End of the job: (time in ms since 1970, Hadoop's status); None before the end.
        self.end: tuple[int | None, str] | None = None
        #: Number of application masters that started for the job.
        self.masters = 0
        #: How often each counter that is not stored occurred in attempts, by the counter's name.
        self.unread: Counter[str] = Counter()

    def take(self, kind: str, event: dict[str, Any]) -> bool:
        """Process one record; return False if the tables need no record of this kind.

        ``kind`` is the name of the event, such as ``JobSubmitted``; ``event`` is the content.
        Raises ``KeyError``, ``TypeError``, ``ValueError`` or ``AttributeError`` for a malformed
        record, and ``TooManyError`` for too many attempts.
        """
        if kind == "AMStarted":
            self.masters += 1
            self.master_ms = hadoop.ms_of(event["startTime"])
        elif kind.startswith("Job"):
            return self._job(kind, event)
        elif kind == "TaskStarted":
            task, start_ms = str(event["taskid"]), hadoop.ms_of(event["startTime"])
            job = self.job or self._of(hadoop.job_of(task) or "")
            if start_ms is not None and len(job.task_starts_ms) < MOST_ATTEMPTS:
                job.task_starts_ms[task] = start_ms
        elif kind == "TaskAttemptStarted":
            attempt = self._attempt(event)
            attempt.start_ms = hadoop.ms_of(event["startTime"])
            attempt.locality = hadoop.text_of(_plain(event.get("locality")))
        elif kind in {"MapAttemptFinished", "ReduceAttemptFinished", "TaskAttemptFinished"}:
            attempt = self._attempt(event)
            self._ended(attempt, event, event["taskStatus"])
            if attempt.kind == "map" and "mapFinishTime" in event:
                attempt.input_done_ms = hadoop.ms_of(event["mapFinishTime"])
            elif attempt.kind == "reduce":
                attempt.input_done_ms = hadoop.ms_of(event["shuffleFinishTime"])
                attempt.sorted_ms = hadoop.ms_of(event["sortFinishTime"])
        elif kind == "TaskAttemptUnsuccessfulCompletion":
            self._ended(self._attempt(event), event, event["status"])
        else:
            return False
        return True

    def _job(self, kind: str, event: dict[str, Any]) -> bool:
        if kind == "JobSubmitted":
            job = self._of(str(event["jobid"]))
            job.submit_ms = hadoop.ms_of(event["submitTime"])
            job.name = hadoop.text_of(event["jobName"])
            job.user = hadoop.text_of(event.get("userName"))
            job.queue = hadoop.text_of(_plain(event.get("jobQueueName")))
        elif kind == "JobQueueChange":
            self._of(str(event["jobid"])).queue = hadoop.text_of(event["jobQueueName"])
        elif kind == "JobInited":
            job = self._of(str(event["jobid"]))
            job.launch_ms = hadoop.ms_of(event["launchTime"])
            job.maps = hadoop.count_of(event.get("totalMaps"))
            job.reduces = hadoop.count_of(event.get("totalReduces"))
        elif kind == "JobInfoChange":
            job = self._of(str(event["jobid"]))
            job.submit_ms = hadoop.ms_of(event["submitTime"]) or job.submit_ms
            job.launch_ms = hadoop.ms_of(event["launchTime"]) or job.launch_ms
        elif kind in {"JobFinished", "JobUnsuccessfulCompletion"}:
            job = self._of(str(event["jobid"]))
            job.finish_ms = hadoop.ms_of(event["finishTime"])
            ended = "SUCCEEDED" if kind == "JobFinished" else "FAILED"
            status = str(event.get("jobStatus") or ended)
            job.outcome = hadoop.outcome_of(status)
            self.end = (job.finish_ms, status)
            columns = hadoop.columns_of(self._kept(event.get("totalCounters")), "")
            job.counts = {name: columns[name] for name in columns if name.endswith("_bytes")}
        else:
            return False
        return True

    def _of(self, name: str) -> Job:
        if self.job is None:
            if not name:
                raise ValueError("names no job")
            self.job = Job(source_id=name, line=1)
        elif self.job.source_id != name:
            raise ValueError(f"belongs to another job, {name}")
        return self.job

    def _attempt(self, event: dict[str, Any]) -> Attempt:
        name = str(event["attemptId"])
        job = self.job or self._of(hadoop.job_of(name) or "")
        if name not in job.attempts:
            if len(job.attempts) >= MOST_ATTEMPTS:
                raise TooManyError(f"has more than {MOST_ATTEMPTS:,} attempts")
            kind = hadoop.kind_of(event["taskType"]) or "task"
            task, number = str(event["taskid"]), hadoop.attempt_number(name)
            job.attempts[name] = Attempt(task, number, kind)
        return job.attempts[name]

    def _ended(self, attempt: Attempt, event: dict[str, Any], status: object) -> None:
        attempt.finish_ms = hadoop.ms_of(event["finishTime"])
        attempt.outcome = hadoop.outcome_of(status)
        attempt.odd_end = hadoop.odd_end(status)
        attempt.host = hadoop.text_of(_plain(event.get("hostname"))) or attempt.host
        rack = hadoop.text_of(_plain(event.get("rackname")))
        attempt.rack = rack.lstrip("/") or None if rack else attempt.rack
        counters = self._kept(event.get("counters"), self.unread)
        attempt.counters = counters
        attempt.counts = hadoop.columns_of(counters, attempt.kind)
        if "CPU_MILLISECONDS" in counters:
            attempt.cpu_s = counters["CPU_MILLISECONDS"] / 1000

    @staticmethod
    def _kept(tree: Any, unread: Counter[str] | None = None) -> dict[str, int]:
        """Return the values of the counters that are stored, by name.

        ``tree`` is Avro's object of counters. All other counters are counted in ``unread``.
        """
        found: dict[str, int] = {}
        for group in (_plain(tree) or {}).get("groups", []):
            for counter in group["counts"]:
                name, value = counter["name"], counter["value"]
                if isinstance(value, int) and not isinstance(value, bool) and _wanted(name):
                    found[name] = value
                elif unread is not None and (name in unread or len(unread) < _MOST_NAMES):
                    unread[name] += 1
        return found


def _plain(value: Any) -> Any:
    """Return the value of an Avro union, without the type's name that encloses it; null is None."""
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value[1] if isinstance(value, tuple) else value


def _wanted(name: str) -> bool:
    return name in _KEPT or name in hadoop.COUNTERS or "_BYTES_" in name
