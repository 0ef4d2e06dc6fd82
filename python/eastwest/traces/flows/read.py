"""Import of a list of flows from files of one format; writing of the list, hosts and a report."""

from __future__ import annotations

import csv
import io
import ipaddress
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from eastwest.account import Account
from eastwest.errors import InputError
from eastwest.files import write_whole
from eastwest.traces import matrix
from eastwest.traces.flows import capture, netflow, nfdump, packets, sflow
from eastwest.traces.flows.collect import Collector, FlowList, Wanted
from eastwest.traces.flows.stream import Stream
from eastwest.traces.made import unknown
from eastwest.traces.source import Source, Told
from eastwest.units import clean, count, plural

#: Description of each format of flow records and packets, by the format's name for ``--format``.
SOURCES = {
    "nfdump": "text of nfdump: csv, pipe, line, long, extended or biline",
    "netflow": "export messages of NetFlow v5, v9 or IPFIX, in files or in a capture",
    "sflow": "datagrams of sFlow v5, in files or in a capture",
    "pcap": "traffic in a capture (pcap, pcapng)",
}
#: Number of first bytes of a file, and number of first packets of a capture, from which the format
#: is recognised.
_START, _FIRST_PACKETS = 4096, 1000
#: If at least this share of the first packets of a capture are export messages, the capture was
#: made at a collector.
_EXPORTS = 0.9
_NFCAPD = (b"\x0c\xa5", b"\xa5\x0c")
_MOST_HOSTS_BYTES, _MOST_HOSTS = 64 << 20, 1_000_000
_UDP = 17


def sniff(path: Path) -> str:
    """Return the format of a file: a key of ``SOURCES``, or ``htsim`` for a connection matrix.

    Raises ``InputError`` if the format is not known. If the first packets of a capture are export
    messages, it was made at a collector, and the format is that of the messages.
    """
    with Source(path) as source:
        start = source.peek(_START)
        if not start:
            raise InputError(f"{source.name}: is empty")
        if start[:2] in _NFCAPD:
            raise InputError(
                f"{source.name}: is a binary file of nfdump; write it as text: "
                "nfdump -r FILE -o csv"
            )
        if capture.looks_like(start):
            return _of_capture(Stream(source))
        if sflow.looks_like(start):
            return "sflow"
        if netflow.looks_like(start):
            return "netflow"
        if nfdump.looks_like(start):
            return "nfdump"
        if matrix.looks_like(start):
            return "htsim"
        known = ", ".join([*SOURCES, "htsim"])
        raise unknown(source, f"has no known format ({known}; --format names one)")


def _of_capture(stream: Stream) -> str:
    """Return what a capture contains: ``netflow`` or ``sflow`` messages, or traffic (``pcap``)."""
    seen = {"pcap": 0, "netflow": 0, "sflow": 0}
    for each in islice(capture.packets(stream, Account(stop=False)), _FIRST_PACKETS):
        found = packets.decode(each.link, each.data, each.length)
        if isinstance(found, str):
            continue
        payload = each.data[found.at :] if found.protocol == _UDP else b""
        kind = "sflow" if sflow.looks_like(payload) else "pcap"
        seen["netflow" if netflow.looks_like(payload) else kind] += 1
    total = sum(seen.values())
    kind = max(seen, key=lambda name: seen[name])
    return kind if total and seen[kind] >= _EXPORTS * total else "pcap"


def read(
    files: Sequence[Path],
    source_format: str = "auto",
    wanted: Wanted | None = None,
    *,
    stop: bool = True,
    told: Told | None = None,
) -> FlowList:
    """Return the list of flows from the records or packets of files of one format.

    ``source_format`` is a key of ``SOURCES``, or ``auto``; ``wanted`` has the user's options.
    ``told``, for progress, is called with a file's name and the share that was read, 0 to 1. Raises
    ``InputError`` with the place where a file is damaged; without ``stop``, damaged records are
    left out and counted. A truncated file is read up to its end.
    """
    if not files:
        raise InputError("no file was given")
    if source_format != "auto" and source_format not in SOURCES:
        raise InputError(
            f"the format is {clean(source_format, 40)!r}, but must be auto or one of "
            f"{', '.join(SOURCES)}"
        )
    kinds = {str(path): sniff(path) for path in files} if source_format == "auto" else {}
    if len(set(kinds.values())) > 1:
        shown = ", ".join(f"{clean(path, 100)} of {kind}" for path, kind in kinds.items())
        raise InputError(f"the files are of different formats ({shown}): import them separately")
    kind = next(iter(kinds.values()), source_format)
    if kind not in SOURCES:
        raise InputError(
            f"{clean(str(files[0]), 200)}: has no known format of flow records or packets"
        )
    collector = Collector(wanted or Wanted(), Account(stop=stop))
    whole = _READERS[kind](collector)
    for path in files:
        with Source(path, told) as source:
            whole(source)
    found = collector.finish([path.name for path in files])
    found.source_format = kind
    return found


_Reader = Callable[[Source], None]


def _nfdump(collector: Collector) -> _Reader:
    return lambda source: nfdump.read(source, collector)


def _netflow(collector: Collector) -> _Reader:
    reader = netflow.Reader(collector)

    def read_one(source: Source) -> None:
        stream = Stream(source)
        if not capture.looks_like(stream.peek(12)):
            reader.raw(stream)
        else:
            for each, found, payload in _datagrams(stream, collector, netflow.looks_like):
                sender = str(ipaddress.ip_address(found.src))
                reader.message(payload, (stream.name, each.number), sender)
        collector.account.end(source.name, 0, source.cut)

    return read_one


def _sflow(collector: Collector) -> _Reader:
    reader = sflow.Reader(collector)

    def read_one(source: Source) -> None:
        stream = Stream(source)
        if not capture.looks_like(stream.peek(12)):
            reader.raw(stream)
        else:
            for each, _, payload in _datagrams(stream, collector, sflow.looks_like):
                reader.datagram(payload, (stream.name, each.number), each.time_ns)
        collector.account.end(source.name, 0, source.cut)

    return read_one


def _datagrams(
    stream: Stream, collector: Collector, looks_like: Callable[[bytes], bool]
) -> Iterator[tuple[capture.Captured, packets.Packet, bytes]]:
    """Yield (captured packet, decoded headers, export message) for each message in a capture.

    Messages are the payload of UDP packets; other packets are counted in the collector's account.
    ``looks_like`` recognises a message by its first bytes.
    """
    account = collector.account
    for each in capture.packets(stream, account):
        found = packets.decode(each.link, each.data, each.length)
        place = (stream.name, each.number)
        payload = b""
        if not isinstance(found, str) and found.protocol == _UDP:
            payload = each.data[found.at : found.at + found.payload]
        if isinstance(found, str) or not looks_like(payload):
            then = "it is left out: it has no export message"
            account.note(*place, "packet of other traffic in the capture", consequence=then)
            continue
        if len(payload) < found.payload:
            then = "the records in the captured bytes are used"
            account.note(*place, "message of which only a part was captured", consequence=then)
        yield each, found, payload


def _pcap(collector: Collector) -> _Reader:
    def read_one(source: Source) -> None:
        stream = Stream(source)
        observer = collector.observer(f"capture {source.name}")
        account = collector.account
        for each in capture.packets(stream, account):
            found = packets.decode(each.link, each.data, each.length)
            place = (stream.name, each.number)
            if isinstance(found, str):
                then = "it is left out"
                if found == packets.FRAGMENT:
                    then = (
                        "it is left out: the first fragment states the length of the "
                        "whole UDP datagram"
                    )
                collector.leave(place, found, then)
                continue
            collector.packet(place, observer, found.ends, each.time_ns, found.payload, found.tcp)
        account.end(source.name, 0, source.cut)

    return read_one


_READERS: dict[str, Callable[[Collector], _Reader]] = {
    "nfdump": _nfdump,
    "netflow": _netflow,
    "sflow": _sflow,
    "pcap": _pcap,
}


def read_hosts(path: Path) -> dict[bytes, str]:
    """Return the name or number of each host, by its packed address, from a CSV file.

    The columns are ``host`` and ``address``; a host may have several addresses. Raises
    ``InputError`` if a row is not valid.
    """
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    if path.stat().st_size > _MOST_HOSTS_BYTES:
        raise InputError(f"{path} is too large: at most {_MOST_HOSTS_BYTES >> 20} MiB are read")
    found: dict[bytes, str] = {}
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = csv.DictReader(file)
        try:
            lacking = [c for c in ("host", "address") if c not in (rows.fieldnames or [])]
            if lacking:
                raise InputError(
                    f"{path}:1: has no column {', '.join(lacking)}; host and address are needed"
                )
            for row in rows:
                where = f"{path}:{rows.line_num}"
                host = (row["host"] or "").strip()
                text = (row["address"] or "").strip()
                try:
                    address = ipaddress.ip_address(text.partition("/")[0]).packed
                except ValueError:
                    raise InputError(
                        f"{where}: {clean(text, 40)!r} is not an address of IPv4 or IPv6"
                    ) from None
                if not host or len(host) > 64 or not host.isprintable():
                    raise InputError(
                        f"{where}: host must be a name of 1 to 64 printable characters"
                    )
                if found.setdefault(address, host) != host:
                    raise InputError(
                        f"{where}: the address {text} already belongs to the host {found[address]}"
                    )
                if len(found) > _MOST_HOSTS:
                    raise InputError(
                        f"{path}: has more than {_MOST_HOSTS:,} addresses, which is the maximum"
                    )
        except csv.Error as error:
            raise InputError(f"{path}:{rows.line_num}: {error}") from None
    if not found:
        raise InputError(f"{path}: has no row with a host")
    return found


def networks(texts: Sequence[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Return the networks that the texts of ``--within`` name, such as ``10.0.0.0/8``.

    Raises ``InputError`` if a text is not a network.
    """
    try:
        return [ipaddress.ip_network(text, strict=False) for text in texts]
    except ValueError as error:
        raise InputError(
            f"--within: {clean(str(error), 100)}; a network such as 10.0.0.0/8 is expected"
        ) from None


def beside(out: Path) -> tuple[Path, Path]:
    """Return the paths of the two files that are written next to the list of flows ``out``.

    The result is (CSV file of the hosts, JSON file with the report on records that were left out).
    """
    return out.with_name(f"{out.stem}.hosts.csv"), out.with_name(f"{out.stem}.account.json")


def write(found: FlowList, out: Path, files: Sequence[Path]) -> None:
    """Write a list of flows as CSV to ``out``, and hosts and report to the files of ``beside``.

    ``files`` are the files from which the flows were imported; the report names them.
    """
    hosts, account = beside(out)
    made = io.StringIO()
    rows = csv.writer(made, lineterminator="\n")
    rows.writerow(["src", "dst", "bytes", "start_s", "end_s", "protocol", "packets"])
    for each in found.flows:
        times = f"{each.start_s:.9f}", f"{each.end_s:.9f}"
        rows.writerow([each.src, each.dst, each.bytes, *times, each.protocol, each.packets])
    write_whole(out, made.getvalue().encode())
    named = io.StringIO()
    rows = csv.writer(named, lineterminator="\n")
    rows.writerow(["host", "address"])
    rows.writerows(found.hosts.items())
    write_whole(hosts, named.getvalue().encode())
    about = {
        "source": found.source_format,
        "files": [path.name for path in files],
        "began_s": found.began_ns / 1e9,
        "records": found.records,
        "records_in_flows": found.used,
        "records_left_out": found.left,
        "flows": len(found.flows),
        "hosts": len(found.hosts),
        "sampling": found.sampling,
        **found.account.as_json(),
    }
    write_whole(account, json.dumps(about, indent=1, ensure_ascii=False).encode() + b"\n")


def shown(found: FlowList) -> str:
    """Return one line of text: how many of the records or packets are in the flows."""
    are = "is" if found.used == 1 else "are"
    of = plural(found.records, "record or packet", "records or packets")
    return f"{count(found.used)} of {of} {are} in these flows"
