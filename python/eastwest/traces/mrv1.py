"""Job histories of Hadoop 0.20 to 1.x (MRv1): ``KIND KEY="value" KEY="value" .`` records.

A record begins with a line that starts with Job, Task, MapAttempt, ReduceAttempt or Meta. A value
may contain line ends, for example in stack traces; a backslash precedes characters with a special
meaning. A file may have the histories of many jobs, like files in the tests of Rumen: the line
``!!FILE=name!!`` precedes each history, and configurations are between the histories. A job stays
in memory until it and ``_HELD`` other jobs have ended, because its configuration may follow.

The format is version 1 of the log that ``JobHistory`` of Hadoop 0.20.2 writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.traces import companions, hadoop
from eastwest.traces.hadoop import Attempt, Confs, Job
from eastwest.traces.source import Source
from eastwest.traces.write import Writer

#: Maximum length of a record of a job history, in bytes.
MOST_RECORD_BYTES = 4 << 20
#: Maximum number of ended jobs in memory; when one more job ends, the oldest is written.
_HELD = 32
_KIND = re.compile(r"(Job|Task|MapAttempt|ReduceAttempt|Meta) (?=[A-Z_]+=\")")
_PAIR = re.compile(r'([A-Z_]+)="([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_COUNTER = re.compile(r"\[\(([A-Z0-9_]+)\)\([^()]*\)\((-?[0-9]{1,19})\)\]")
_FILE = re.compile(r"\f?!!FILE=(.*?)!!")
_REDUCE_TIMES = {"SHUFFLE_FINISHED": "input_done_ms", "SORT_FINISHED": "sorted_ms"}


def looks_like(start: bytes) -> bool:
    """Whether the first bytes of a file may be a job history of Hadoop 0.20 to 1.x."""
    for line in start.decode(errors="replace").splitlines()[:50]:
        if line.strip():
            return bool(_KIND.match(line) or _FILE.match(line))
    return False


def read(source: Source, writer: Writer, account: Account, confs: Confs) -> None:
    """Read the jobs of a history file, and add them to the tables of ``writer``.

    Problems are reported to ``account``; ``confs`` has configurations of jobs.
    """
    reader = _Reader(source, writer, account, confs)
    for line, text in _records(source, account):
        try:
            reader.take(line, text)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            account.bad(source.name, line, "is not a record of a job history", str(error))
    reader.end()


def _records(source: Source, account: Account) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, text) of each record; the text may have several lines."""
    held: list[str] = []
    began, length = 0, 0
    for number, raw in source.lines(MOST_RECORD_BYTES):
        line = raw.decode(errors="replace")
        starts = _KIND.match(line) or _FILE.match(line)
        if held and (starts or length > MOST_RECORD_BYTES):
            yield began, "\n".join(held)
            held, length = [], 0
        if not held:
            began = number
        if held or line.strip():
            held.append(line)
            length += len(line)
        if held and _KIND.match(held[0]) and _whole_end(line):
            yield began, "\n".join(held)
            held, length = [], 0
    if held:
        yield began, "\n".join(held)
    account.end(source.name, began, source.cut)


def _whole_end(text: str) -> bool:
    """Whether a record may end with the line ``text``, because it ends with a closing quote.

    In newer logs, a space and a dot follow the quote.
    """
    end = text.rstrip().removesuffix(".").rstrip()
    return end.endswith('"') and not end.endswith('\\"')


class _Reader:
    def __init__(self, source: Source, writer: Writer, account: Account, confs: Confs) -> None:
        self.name = source.name
        self.writer = writer
        self.account = account
        self.confs = confs
        self.jobs: dict[str, Job] = {}
        self.ended: list[str] = []
        self.attempts = 0
        #: Id of the job whose configuration is being read; None outside of a configuration.
        self.conf: str | None = None

    def take(self, line: int, text: str) -> None:
        """Read one record, or text between two histories; ``line`` is the number of its first line.

        Raises ``ValueError`` if the record is malformed.
        """
        kind = _KIND.match(text)
        if not kind:
            self._other(line, text)
            return
        pairs = {
            key: _ESCAPE.sub(r"\1", value) if "\\" in value else value
            for key, value in _PAIR.findall(text)
        }
        if not _whole_end(text):
            reason = "incomplete record: only its complete fields are used"
            self.account.note(self.name, line, reason)
        if kind.group(1) == "Job":
            self._job(line, pairs)
        elif kind.group(1) in {"MapAttempt", "ReduceAttempt"}:
            self._attempt(line, pairs, kind.group(1) == "ReduceAttempt")
        elif kind.group(1) == "Task":
            self._task(line, pairs)
        elif pairs.get("VERSION", "1") != "1":
            reason = "a log whose version is not 1"
            then = "its records are read as if they were of version 1"
            self.account.change(self.name, line, reason, then, pairs["VERSION"])

    def _other(self, line: int, text: str) -> None:
        """Read text between two histories: a line ``!!FILE=…!!``, a configuration, or both.

        ``line`` is the number of the first line. Raises ``ValueError`` for other text.
        """
        first, _, rest = text.partition("\n")
        file = _FILE.match(first)
        if file:
            name = file.group(1)
            self.conf = hadoop.job_id(name) if name.endswith("_conf.xml") else None
        elif self.conf is None:
            raise ValueError(first)
        xml = rest if file else text
        if self.conf and xml.strip():
            settings = companions.settings(xml.strip().encode(), f"{self.name}:{line}")
            if self.conf in self.jobs:
                self.jobs[self.conf].conf = hadoop.conf_of(settings)

    def _of(self, line: int, name: str | None) -> Job:
        if name is None:
            raise ValueError("the record names no job")
        if name not in self.jobs:
            self.jobs[name] = Job(source_id=name, line=line)
        return self.jobs[name]

    def _job(self, line: int, pairs: dict[str, str]) -> None:
        name = pairs.get("JOBID", "")
        job = self._of(line, name if hadoop.job_id(name) == name else None)
        job.name = hadoop.text_of(pairs.get("JOBNAME")) or job.name
        job.user = hadoop.text_of(pairs.get("USER")) or job.user
        job.queue = hadoop.text_of(pairs.get("JOB_QUEUE")) or job.queue
        job.submit_ms = _time(pairs, "SUBMIT_TIME") or job.submit_ms
        job.launch_ms = _time(pairs, "LAUNCH_TIME") or job.launch_ms
        job.finish_ms = _time(pairs, "FINISH_TIME") or job.finish_ms
        job.maps = _tasks(pairs, "TOTAL_MAPS", job.maps)
        job.reduces = _tasks(pairs, "TOTAL_REDUCES", job.reduces)
        if "COUNTERS" in pairs:
            columns = hadoop.columns_of(_counters(pairs["COUNTERS"]), "")
            job.counts = {c: columns[c] for c in columns if c.endswith("_bytes")}
        outcome = hadoop.outcome_of(pairs.get("JOB_STATUS"))
        if outcome is not None:
            job.outcome = outcome
            self._ended(name)

    def _task(self, line: int, pairs: dict[str, str]) -> None:
        task = pairs.get("TASKID", "")
        job = self._of(line, hadoop.job_of(task))
        start_ms = _time(pairs, "START_TIME")
        if start_ms is not None:
            job.task_starts_ms[task] = start_ms
        for place in pairs.get("SPLITS", "").split(","):
            if place:
                self.writer.host(*hadoop.host_of(place))

    def _attempt(self, line: int, pairs: dict[str, str], reduce: bool) -> None:
        name, task = pairs.get("TASK_ATTEMPT_ID", ""), pairs.get("TASKID", "")
        job = self._of(line, hadoop.job_of(name))
        kind = hadoop.kind_of(pairs.get("TASK_TYPE")) or ("reduce" if reduce else "map")
        attempt = job.attempts.get(name)
        if attempt is None:
            self.attempts += 1
            if self.attempts > hadoop.MOST_ATTEMPTS:
                raise InputError(
                    f"{self.name}:{line}: the jobs that are held in memory have more than "
                    f"{hadoop.MOST_ATTEMPTS:,} attempts, which is the maximum"
                )
            attempt = Attempt(task, hadoop.attempt_number(name), kind)
            job.attempts[name] = attempt
        attempt.start_ms = _time(pairs, "START_TIME") or attempt.start_ms
        attempt.finish_ms = _time(pairs, "FINISH_TIME") or attempt.finish_ms
        for key, column in _REDUCE_TIMES.items():
            if key in pairs:
                setattr(attempt, column, _time(pairs, key))
        if pairs.get("HOSTNAME"):
            rack, attempt.host = hadoop.host_of(pairs["HOSTNAME"])
            attempt.rack = rack or attempt.rack
        elif attempt.host is None and pairs.get("TRACKER_NAME"):
            tracker = pairs["TRACKER_NAME"].partition(":")[0].removeprefix("tracker_")
            attempt.host = hadoop.text_of(tracker)
        attempt.outcome = hadoop.outcome_of(pairs.get("TASK_STATUS")) or attempt.outcome
        attempt.odd_end = hadoop.odd_end(pairs.get("TASK_STATUS")) or attempt.odd_end
        if "COUNTERS" in pairs:
            counters = _counters(pairs["COUNTERS"])
            self._note_counters(line, pairs["COUNTERS"], counters, kind)
            attempt.counts = hadoop.columns_of(counters, kind)
            if "CPU_MILLISECONDS" in counters:
                attempt.cpu_s = counters["CPU_MILLISECONDS"] / 1000

    def _note_counters(self, line: int, text: str, counters: dict[str, int], kind: str) -> None:
        hadoop.note_counters(self.account, self.name, line, counters, kind)
        # a counter is written as [(NAME)(title)(value)]
        unread = text.count("[(") - len(counters) if "[(" in text else int(bool(text))
        if unread > 0:
            reason = "counter that is not of the form [(NAME)(title)(value)]"
            self.account.note(self.name, line, reason, text, unread, "it is left out")

    def _ended(self, name: str) -> None:
        if name not in self.ended:
            self.ended.append(name)
        if len(self.ended) > _HELD:
            self._write(self.ended.pop(0))

    def _write(self, name: str) -> None:
        job = self.jobs.pop(name)
        self.attempts -= len(job.attempts)
        hadoop.write_job(job, self.writer, self.account, self.name, self.confs)

    def end(self) -> None:
        """Write the jobs that are still in memory, including jobs without an end."""
        for name in list(self.jobs):
            self._write(name)


def _time(pairs: dict[str, str], key: str) -> int | None:
    return hadoop.ms_of(_whole(pairs, key))


def _tasks(pairs: dict[str, str], key: str, before: int | None) -> int | None:
    count = hadoop.count_of(_whole(pairs, key))
    if count is not None and count >= 1 << 32:
        raise ValueError(f"{key} is {count}, but must be below 2^32")
    return before if count is None else count


def _whole(pairs: dict[str, str], key: str) -> int | None:
    text = pairs.get(key)
    if not text:
        return None
    if len(text) > 19 or not text.removeprefix("-").isdecimal():
        raise ValueError(f"{key} is {text[:40]!r}, but must be a whole number")
    return int(text)


def _counters(text: str) -> dict[str, int]:
    """Return the values of counters by name from ``{(group)(title)[(NAME)(title)(value)]…}``."""
    return {name: int(value) for name, value in _COUNTER.findall(text)}
