"""Counts the records of samples without the readers of Eastwest, for ``check_traces``.

Text is counted by the first words of its lines, JSON by ``json``, protobuf by a scan of its wire
format, OTF2 by the number of events that its definitions name. Each function returns parts: the
numbers of records of a kind that were counted, that were imported, and that are in the account.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import json
import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import fastavro
import polars as pl

from eastwest.errors import InputError
from eastwest.observe.take import sniff
from eastwest.traces.made import Imported
from eastwest.traces.source import Source

_SPAN_FORMATS = ("otlp-json", "otlp-proto", "jaeger", "zipkin", "csv")
_LINES = re.compile(r"\r?\n")


@dataclass(frozen=True)
class Part:
    """Records of one kind: numbers counted, imported, and in the account."""

    kind: str
    counted: int
    imported: int
    told: int = 0


def bytes_of(path: Path) -> bytes:
    """Return the content of a file, decompressed if needed."""
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def text_of(path: Path) -> str:
    """Return the text of a file, decompressed if needed."""
    return bytes_of(path).decode(errors="replace")


def told(about: dict[str, Any], *words: str, kinds: tuple[str, ...] = ()) -> int:
    """Return the number of records in the account whose reason begins with one of the words."""
    return sum(
        entry["count"]
        for kind in kinds or ("skipped", "changed", "noted")
        for entry in about[kind]
        if entry["reason"].startswith(words)
    )


#: First bytes of a capture in the format pcap, with times in µs and in ns, and its byte order.
_PCAP: dict[bytes, Literal["little", "big"]] = {
    b"\xd4\xc3\xb2\xa1": "little",
    b"\x4d\x3c\xb2\xa1": "little",
    b"\xa1\xb2\xc3\xd4": "big",
    b"\xa1\xb2\x3c\x4d": "big",
}
_PCAP_HEADER, _PACKET_HEADER = 24, 16
#: First bytes of a section of the format pcapng, and its byte-order magic in little-endian order.
_PCAPNG, _LITTLE = b"\n\r\r\n", b"\x4d\x3c\x2b\x1a"
#: Types of blocks of pcapng with a packet: packet (obsolete), simple packet, enhanced packet.
_PACKET_BLOCKS = {2, 3, 6}


def is_capture(path: Path) -> bool:
    """Whether a file is a capture of packets in the format pcap or pcapng."""
    with path.open("rb") as file:
        start = file.read(4)
    if start[:2] == b"\x1f\x8b":
        with gzip.open(path) as packed:
            start = packed.read(4)
    return start in _PCAP or start == _PCAPNG


def packet_parts(path: Path, used: int, left: int) -> list[Part]:
    """Return the count of packets of a capture, with the packets in flows and those left out."""
    data = bytes_of(path)
    counted = _in_pcapng(data) if data[:4] == _PCAPNG else _in_pcap(data)
    return [Part("packets", counted, used, left)]


def _in_pcap(data: bytes) -> int:
    order = _PCAP[data[:4]]
    at, counted = _PCAP_HEADER, 0
    while at + _PACKET_HEADER <= len(data):
        at += _PACKET_HEADER + int.from_bytes(data[at + 8 : at + 12], order)
        counted += 1
    return counted


def _in_pcapng(data: bytes) -> int:
    at, counted = 0, 0
    order: Literal["little", "big"] = "little"
    while at + 12 <= len(data):
        if data[at : at + 4] == _PCAPNG:
            order = "little" if data[at + 8 : at + 12] == _LITTLE else "big"
        kind, length = (int.from_bytes(data[i : i + 4], order) for i in (at, at + 4))
        counted += kind in _PACKET_BLOCKS
        at += max(length, 12)
    return counted


def mpi_parts(source: str, files: list[Path], about: dict[str, Any]) -> list[Part]:
    """Return counts of records of an MPI trace, by kind: counted, imported, in the account."""
    parts = {"ti": _ti, "chakra": _chakra, "dimemas": _dimemas, "goal": _goal, "otf2": _otf2}
    return parts[source](files, about)


def _ti(files: list[Path], about: dict[str, Any]) -> list[Part]:
    found: Counter[str] = Counter()
    for text in _ti_texts(files):
        for line in _LINES.split(text):
            words = line.split()
            if words and not words[0].startswith("#"):
                found[words[1].lower()] += 1
    return [
        Part(call, number, about["calls"].get(call, 0), told(about, f'found the call "{call}"'))
        for call, number in sorted(found.items())
    ]


def _ti_texts(files: list[Path]) -> Iterator[str]:
    for path in files:
        if not tarfile.is_tarfile(path):
            yield text_of(path)
            continue
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member) if re.search(r"\d", member.name) else None
                if content is not None:
                    yield content.read().decode()


_COLLECTIVES = (
    "allreduce", "reduce", "allgather", "gather", "scatter", "bcast", "alltoall", "reducescatter",
    "barrier", "scan", "exscan",
)  # fmt: skip
_IN_BACKGROUND = tuple(f"i{call}" for call in _COLLECTIVES)


def _chakra(files: list[Path], about: dict[str, Any]) -> list[Part]:
    kinds: Counter[int] = Counter()
    for path in files:
        start = path.read_bytes()
        if start.lstrip()[:1] == b"{":
            kinds.update(node["NodeType"] for node in json.loads(start)["workload_graph"])
        else:
            kinds.update(_types(start))
    calls = about["calls"]
    launches = told(about, "call that launches a collective")
    lost = told(about, "a collective", kinds=("changed",))
    unsent = told(about, "a send", "a message without", kinds=("changed",))
    # Each node is a record; nodes that communicate and cannot be replayed compute, too.
    computing = calls.get("compute", 0) - launches - lost - unsent
    others = sum(number for kind, number in kinds.items() if kind not in {5, 6, 7})
    return [
        Part("nodes of computing", others, computing),
        Part("collectives", kinds[7], _sum(calls, _COLLECTIVES), launches + lost),
        Part("messages", kinds[5] + kinds[6], _sum(calls, ("send", "recv")), unsent),
    ]


def _types(data: bytes) -> Iterator[int]:
    """Yield the type (field 3) of each node message; the message's length precedes it."""
    at, first = 0, True
    while at < len(data):
        length, at = _varint(data, at)
        kinds = [v for field, v in _scan(data[at : at + length]) if field == 3]
        if not first:
            yield kinds[0] if kinds else 0
        at, first = at + length, False


def _scan(message: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
        elif key & 7 == 2:
            length, at = _varint(message, at)
            at += length
        else:
            at += 8 if key & 7 == 1 else 4


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            break
    return value, at


def _sum(numbers: dict[str, int], names: tuple[str, ...]) -> int:
    return sum(numbers.get(name, 0) for name in names)


def _dimemas(files: list[Path], about: dict[str, Any]) -> list[Part]:
    names = {"CPU burst": "1", "NX send": "2", "NX recv": "3", "global OP": "10"}
    found: Counter[str] = Counter()
    for line in text_of(files[0]).splitlines()[1:]:
        if line[:1].isdigit() or line.startswith("d:"):
            found[line.partition(":")[0]] += 1
        else:
            found.update(
                names.get(name, name) for name in re.findall(r'"([^"]*)" *\{ *[^\s]', line)
            )
    calls = about["calls"]
    # Waits for non-blocking operations, whose last field is 2.
    waits = len(re.findall(r"^10:(?:[^:\n]*:){8}2 *$", text_of(files[0]), re.MULTILINE))
    known = sum(found[kind] for kind in ("1", "2", "3", "10"))
    events = sum(found[kind] for kind in ("20", "40", "41", "block begin", "block end"))
    return [
        Part("bursts", found["1"], calls.get("compute", 0)),
        Part("sends", found["2"], _sum(calls, ("send", "isend"))),
        Part("receives and waits", found["3"], _sum(calls, ("recv", "irecv", "wait"))),
        Part("operations", found["10"] - waits, _sum(calls, _COLLECTIVES + _IN_BACKGROUND)),
        Part("events", events, 0, told(about, "event record")),
        Part(
            "definitions", sum(found.values()) - known - events, about["records"] - known - events
        ),
    ]


def _goal(files: list[Path], about: dict[str, Any]) -> list[Part]:
    data = files[0].read_bytes()
    found: Counter[str] = Counter()
    if data[:2] == b"\x7f\x10":
        for at in range(14, 14 + 16 * int.from_bytes(data[8:12], "little"), 16):
            begin = 8 + int.from_bytes(data[at : at + 8], "little")
            count, roots = (
                int.from_bytes(data[begin + i : begin + i + 4], "little") for i in (0, 4)
            )
            first = begin + 8 + 4 * roots
            kinds = data[first + 4 : first + 39 * count : 39]
            found.update(("send", "recv", "calc")[kind - 1] for kind in kinds)
    else:
        for line in text_of(files[0]).splitlines():
            words = re.findall(r"\b(calc|send|recv)\b\s*\d", line.partition("//")[0])
            found.update(words)
    calls = about["calls"]
    names = {"calc": "compute", "send": "send", "recv": "recv"}
    return [Part(kind, found[kind], calls.get(call, 0)) for kind, call in names.items()]


def _otf2(files: list[Path], about: dict[str, Any]) -> list[Part]:
    otf2 = importlib.import_module("otf2")  # otf2 is an optional package, so it is imported here.
    kinds: Counter[str] = Counter()
    with otf2.reader.open(str(files[0])) as trace:
        whole = sum(location.number_of_events for location in trace.definitions.locations)
        for _, event in trace.events:
            region = getattr(getattr(event, "region", None), "name", "")
            outside = not region.startswith("MPI_") and type(event).__name__ in {"Enter", "Leave"}
            kinds["outside" if outside else type(event).__name__] += 1
    calls = about["calls"]
    taken = {"Enter", "Leave", "outside", "MpiSend", "MpiRecv", "MpiIsend", "MpiCollectiveEnd"}
    begun = kinds["NonBlockingCollectiveRequest"]
    taken |= {"NonBlockingCollectiveRequest", "NonBlockingCollectiveComplete"}
    others = sum(number for kind, number in kinds.items() if kind not in taken)
    sent = kinds["MpiSend"] + kinds["MpiIsend"]
    return [
        Part("events", whole, about["records"]),
        Part("sends", sent, _sum(calls, ("send", "isend"))),
        Part("receives", kinds["MpiRecv"], calls.get("recv", 0)),
        Part("collectives", kinds["MpiCollectiveEnd"], _sum(calls, _COLLECTIVES)),
        Part("non-blocking collectives", begun, _sum(calls, _IN_BACKGROUND)),
        Part("regions outside MPI", kinds["outside"], 0, told(about, "entry or exit")),
        Part("other events", others, 0, told(about, "event ")),
    ]


def matrix_parts(path: Path, connections: int, about: dict[str, Any]) -> list[Part]:
    """Return counts of records of a connection matrix: counted, imported, in the account."""
    lines = [line.split() for line in path.read_text("utf-8").splitlines()]
    flows = [words for words in lines if words and "->" in words[0]]
    return [
        Part("connections", len(flows), connections),
        Part("priorities", sum("prio" in words for words in flows), 0, told(about, "priority")),
        Part("triggers", sum(w[:1] == ["trigger"] for w in lines), 0, told(about, "trigger")),
        Part("failures", sum(w[:1] == ["failure"] for w in lines), 0, told(about, "a failure")),
    ]


def job_parts(source: str, path: Path, about: dict[str, Any]) -> list[Part]:
    """Return counts of records of a history of jobs: counted, imported, in the account."""
    counters = {
        "swim": _swim,
        "rumen": _rumen,
        "mrv1": _mrv1,
        "jhist": _jhist,
        "spark": _spark,
        "table": _table,
    }
    return counters[source](path, about, about["rows"])


def _swim(path: Path, about: dict[str, Any], rows: dict[str, int]) -> list[Part]:
    lines = [line.split("\t") for line in text_of(path).splitlines()]
    numeric = [w for w in lines if any(c and not re.search(r"[^0-9.\s-]", c) for c in w[6:8])]
    skipped = about["rows_skipped"] + told(about, "blank line")
    return [
        Part("jobs", len(lines), rows["jobs"], skipped),
        Part("ninth columns", sum(len(w) > 8 for w in lines), 0, told(about, "column 9")),
        Part("columns 7 and 8 without a path", len(numeric), 0, told(about, "column 7 or 8")),
    ]


def _rumen(path: Path, about: dict[str, Any], rows: dict[str, int]) -> list[Part]:
    found: Counter[str] = Counter()

    def look(made: dict[str, Any]) -> dict[str, Any]:
        found["attempts"] += "attemptID" in made
        found["rankings"] += "rankings" in made
        found["lost"] += "attemptID" in made and made.get("result") in {"FAILED", "KILLED", "FAIL"}
        return made

    decoder, text, at = json.JSONDecoder(object_hook=look), text_of(path).strip(), 0
    while at < len(text):
        _, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        found["jobs"] += 1
    return [
        Part("jobs", found["jobs"], rows["jobs"], about["rows_skipped"]),
        Part("attempts", found["attempts"], rows.get("attempts", 0)),
        Part("failed or killed attempts", found["lost"], 0, told(about, "attempt that failed")),
        Part("distributions", found["rankings"], 0, told(about, "distribution of attempts")),
    ]


def _mrv1(path: Path, about: dict[str, Any], rows: dict[str, int]) -> list[Part]:
    text = text_of(path)
    jobs = set(re.findall(r'^Job JOBID="(\w+)"', text, re.MULTILINE))
    attempts = set(re.findall(r'^\w+Attempt .*?TASK_ATTEMPT_ID="(\w+)"', text, re.MULTILINE))
    return [
        Part("jobs", len(jobs), rows["jobs"], about["rows_skipped"]),
        Part("attempts", len(attempts), rows.get("attempts", 0)),
    ]


#: Events of a job history whose times, counters or ends an import reads.
_HISTORY = {
    "AMStarted", "JobSubmitted", "JobQueueChange", "JobInfoChange", "JobInited", "JobFinished",
    "TaskStarted",
    "JobUnsuccessfulCompletion", "TaskAttemptStarted", "MapAttemptFinished",
    "ReduceAttemptFinished", "TaskAttemptFinished", "TaskAttemptUnsuccessfulCompletion",
}  # fmt: skip


def _history(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield events of a history of Hadoop 2 or 3: JSON lines, or records in Avro."""
    data = bytes_of(path)
    if data.startswith(b"Avro-Binary"):
        _, schema, rest = data.split(b"\n", 2)
        stream, parsed = io.BytesIO(rest), fastavro.parse_schema(json.loads(schema))
        while stream.tell() < len(rest):
            record: Any = fastavro.schemaless_reader(stream, parsed, None, return_record_name=True)
            yield record["event"]
        return
    for line in data.decode().splitlines()[2:]:
        if line.strip() and "event" in json.loads(line):
            yield next(iter(json.loads(line)["event"].items()))


def _jhist(path: Path, about: dict[str, Any], rows: dict[str, int]) -> list[Part]:
    events = list(_history(path))
    kinds = Counter(name.rpartition(".")[2] for name, _ in events)
    attempts = {event["attemptId"] for _, event in events if "attemptId" in event}
    lost = {
        event["attemptId"]
        for name, event in events
        if name.endswith("TaskAttemptUnsuccessfulCompletion")
    }
    read = sum(number for kind, number in kinds.items() if kind in _HISTORY)
    return [
        Part("jobs", kinds["JobSubmitted"], rows["jobs"]),
        Part("events", len(events), read, told(about, "event ")),
        Part("attempts", len(attempts), rows.get("attempts", 0)),
        Part("failed or killed attempts", len(lost), 0, told(about, "attempt that failed")),
    ]


#: Events of a Spark log that an import reads.
_SPARK = {
    "TaskEnd", "JobStart", "JobEnd", "StageSubmitted", "StageCompleted", "ApplicationStart",
    "ApplicationEnd", "EnvironmentUpdate", "ExecutorAdded",
}  # fmt: skip


def _spark(path: Path, about: dict[str, Any], rows: dict[str, int]) -> list[Part]:
    events = [json.loads(line) for line in text_of(path).splitlines() if line.strip()]
    kinds = Counter(event["Event"].rpartition(".")[2] for event in events)
    kinds = Counter({kind.removeprefix("SparkListener"): n for kind, n in kinds.items()})
    ran = {
        event["Stage Info"]["Stage ID"]
        for event in events
        if event["Event"].endswith(("StageSubmitted", "StageCompleted"))
    } | {event["Stage ID"] for event in events if event["Event"].endswith("TaskEnd")}
    named = [stage for event in events for stage in event.get("Stage IDs", [])]
    read = sum(number for kind, number in kinds.items() if kind in _SPARK)
    skipped = about["rows_skipped"]
    return [
        Part("jobs", kinds["JobStart"], rows.get("jobs", 0), skipped),
        Part("tasks", kinds["TaskEnd"], rows.get("attempts", 0)),
        Part("events", len(events), read, told(about, "event ")),
        Part("stages", len(named), rows.get("stages", 0), told(about, "stage that did not")),
        Part("stages that ran", len(ran), rows.get("stages", 0)),
    ]


def _table(path: Path, about: dict[str, Any], rows: dict[str, int]) -> list[Part]:
    if path.suffix == ".parquet":
        counted = pl.read_parquet(path).height
    else:
        counted = len(text_of(path).splitlines()) - 1
    left = about["rows_skipped"] + told(about, "blank line")
    return [Part("rows", counted, rows["jobs"], left)]


def has_spans(path: Path) -> bool:
    """Return whether a file contains spans."""
    try:
        with Source(path) as source:
            return sniff(source) in _SPAN_FORMATS
    except InputError:
        return False


def span_parts(source: str, path: Path, taken: Imported) -> list[Part]:
    """Return counts of spans, links and events of a file: counted, imported, in the account."""
    found = _csv_spans(path) if source == "csv" else _json_spans(json.loads(text_of(path)))
    spans = pl.read_parquet(taken.path / "spans.parquet")
    again = told(taken.about, "duplicate of a span", "another span of the same id")
    kept: Counter[str] = Counter()
    if "extra" in spans.columns:
        for extra in spans["extra"].drop_nulls():
            carried = json.loads(extra)
            kept["links"] += len(carried.get("links", []))
            kept["events"] += len(carried.get("events", []))
    else:
        kept["links"] = told(taken.about, "a link", "links", "reference")
        kept["events"] = told(taken.about, "an event", "events", "a log")
    skipped = taken.about["rows_skipped"] + again
    return [
        Part("spans", found["spans"], spans.height, skipped),
        Part("links", found["links"], kept["links"]),
        Part("events", found["events"], kept["events"]),
    ]


def _csv_spans(path: Path) -> Counter[str]:
    return Counter({"spans": sum(1 for _ in csv.reader(io.StringIO(text_of(path)))) - 1})


def _json_spans(value: Any) -> Counter[str]:
    """Return the number of spans, and of links and events within them, at any depth."""
    found: Counter[str] = Counter()
    if isinstance(value, list):
        for each in value:
            found += _json_spans(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key == "spans" and isinstance(each, list):
                for span in each:
                    references = span.get("references", [])
                    found["spans"] += 1
                    found["links"] += len(span.get("links", [])) + max(0, len(references) - 1)
                    found["events"] += len(span.get("events", [])) + len(span.get("logs", []))
            else:
                found += _json_spans(each)
    return found
