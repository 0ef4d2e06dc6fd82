"""Compares Eastwest's readers of flow records and captures with independent readers.

``python tools/check_flows.py DATA`` reads every file of flows or packets below DATA (pcap, pcapng,
NetFlow, IPFIX, sFlow, text of nfdump), and compares bytes by source, destination and protocol with
a second reader: captures with dpkt, NetFlow and IPFIX with the package netflow, sFlow with tshark
(TSHARK names another program), text of nfdump with a second reading of its columns.
``--write DATE`` puts the table into docs/validation/flows.md. The command exits with 1 where a file
differs, or a reader fails with another error than that of wrong input. dpkt and netflow are needed
beside Eastwest (pip install dpkt netflow).
"""

from __future__ import annotations

import argparse
import gzip
import ipaddress
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dpkt
import netflow

from eastwest.errors import InputError
from eastwest.traces.flows.collect import FlowList, Wanted
from eastwest.traces.flows.read import read, sniff

PAGE = Path(__file__).resolve().parents[1] / "docs" / "validation" / "flows.md"
MARK = "<!-- table by tools/check_flows.py -->"
#: Settings of the import in which no pause divides a flow, so that bytes by hosts can be compared.
WHOLE = Wanted(idle_s=86_400.0)
PROTOCOLS = {6: "tcp", 17: "udp"}
HEADERS = {6: 32, 17: 8}
_MOST_DIFFERENCES = 3
#: Files that differ for a reason that is not an error of Eastwest: name → reason.
KNOWN = {
    "tok2str-oobr-2.pcap": "dpkt does not read IP below MPLS labels",
}
#: Payload bytes by source, destination and protocol.
Bytes = Counter[tuple[str, str, str]]


def counts(src: bytes, dst: bytes) -> bool:
    """Return whether traffic between two addresses is a flow: no multicast, not to itself."""
    a, b = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    wrong = any(each.is_multicast or each.is_unspecified for each in (a, b))
    return a != b and not wrong and b"\xff" * 4 not in {src, dst}


def add(found: Bytes, src: bytes, dst: bytes, protocol: int, payload: int) -> None:
    """Add the payload of a packet between two addresses to the sums."""
    if protocol in PROTOCOLS and payload > 0 and counts(src, dst):
        ends = str(ipaddress.ip_address(src)), str(ipaddress.ip_address(dst))
        found[(*ends, PROTOCOLS[protocol])] += payload


def ours(found: FlowList) -> Bytes:
    """Return the payload bytes of Eastwest's flows."""
    result: Bytes = Counter()
    for flow in found.flows:
        result[found.hosts[flow.src], found.hosts[flow.dst], flow.protocol] += flow.bytes
    return result


def opened(path: Path, folder: Path) -> Path:
    """Return a file, decompressed if it is compressed with gzip."""
    if path.read_bytes()[:2] != b"\x1f\x8b":
        return path
    plain = folder / path.name.removesuffix(".gz")
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    return plain


def packets(path: Path) -> Iterator[tuple[Any, int]]:
    """Yield the IP packets of a capture as dpkt reads them, each with its length in bytes."""
    with path.open("rb") as file:
        reader = dpkt.pcap.UniversalReader(file)
        link = reader.datalink()
        decoder = {
            1: dpkt.ethernet.Ethernet,
            113: dpkt.sll.SLL,
            276: dpkt.sll2.SLL2,
            0: dpkt.loopback.Loopback,
            101: None,
            12: None,
        }[link]
        for _, data in reader:
            try:
                if decoder is None:
                    yield (dpkt.ip6.IP6 if data[0] >> 4 == 6 else dpkt.ip.IP)(data), 0
                else:
                    yield decoder(data).data, 0
            except (dpkt.Error, IndexError, struct.error, ValueError):
                continue


def of_capture(path: Path) -> Bytes:
    """Return the payload bytes of a capture: of TCP, each sent byte once, and of UDP."""
    found: Bytes = Counter()
    covered: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    first: dict[tuple[Any, ...], int] = {}
    epoch: Counter[tuple[Any, ...]] = Counter()
    for packet, _ in packets(path):
        if isinstance(packet, dpkt.ip.IP):
            if packet.offset:
                continue
            length = packet.len - packet.hl * 4
        elif isinstance(packet, dpkt.ip6.IP6):
            length = packet.plen - sum(len(h) for h in packet.all_extension_headers)
        else:
            continue
        layer = packet.data
        if isinstance(layer, dpkt.udp.UDP):
            more = isinstance(packet, dpkt.ip.IP) and packet.mf
            add(
                found,
                packet.src,
                packet.dst,
                17,
                (layer.ulen if more else min(layer.ulen, length)) - 8,
            )
        if not isinstance(layer, dpkt.tcp.TCP):
            continue
        ends = packet.src, packet.dst, layer.sport, layer.dport
        start = layer.seq
        if layer.flags & dpkt.tcp.TH_SYN:
            start = (start + 1) % 2**32
            if (*ends, epoch[ends]) in first and first[*ends, epoch[ends]] != start:
                epoch[ends] += 1
        key = (*ends, epoch[ends])
        base = first.setdefault(key, start)
        payload = length - layer.off * 4
        if payload > 0:
            at = (start - base + 2**31) % 2**32 - 2**31
            covered.setdefault(key, []).append((at, at + payload))
    for key, ranges in covered.items():
        end, total = -(2**40), 0
        for low, high in sorted(ranges):
            total += max(0, high - max(low, end))
            end = max(end, high)
        add(found, key[0], key[1], 6, total)
    return found


def divided(raw: bytes) -> Iterator[bytes]:
    """Yield the export messages of a file.

    NetFlow v9 messages do not state their length, so a file may have only one of them.
    """
    while raw:
        version, second = struct.unpack_from(">HH", raw)
        length = {5: 24 + 48 * second, 10: second}.get(version, len(raw))
        yield raw[:length]
        raw = raw[length:]


def of_messages(path: Path, folder: Path) -> Bytes:
    """Return the payload of NetFlow or IPFIX messages as the package netflow reads them."""
    found: Bytes = Counter()
    templates: dict[str, dict[Any, Any]] = {"netflow": {}, "ipfix": {}}
    raw = path.read_bytes()
    if raw[:4] in {b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4"}:
        messages = [
            bytes(p.data.data) for p, _ in packets(path) if isinstance(p.data, dpkt.udp.UDP)
        ]
    else:
        messages = list(divided(raw))
    for message in messages:
        for flow in netflow.parse_packet(message, templates).flows:
            record = flow.data
            pairs = [
                (record.get(a), record.get(b))
                for a, b in (
                    ("IPV4_SRC_ADDR", "IPV4_DST_ADDR"),
                    ("IPV6_SRC_ADDR", "IPV6_DST_ADDR"),
                    ("sourceIPv4Address", "destinationIPv4Address"),
                    ("sourceIPv6Address", "destinationIPv6Address"),
                )
            ]
            src, dst = next(((a, b) for a, b in pairs if a is not None), (None, None))
            if src is None or dst is None:
                continue
            a, b = (ipaddress.ip_address(each).packed for each in (src, dst))
            keys = ("IN_OCTETS", "IN_BYTES", "octetDeltaCount")
            octets = next((record[k] for k in keys if k in record), 0)
            keys = ("IN_PACKETS", "IN_PKTS", "packetDeltaCount")
            number = next((record[k] for k in keys if k in record), 0)
            keys = ("PROTO", "PROTOCOL", "protocolIdentifier")
            protocol = next((record[k] for k in keys if k in record), 0)
            header = (20 if len(a) == 4 else 40) + HEADERS.get(protocol, 0)
            add(found, a, b, protocol, octets - number * header)
    return found


def of_samples(path: Path, folder: Path) -> Bytes:
    """Return the payload of sFlow samples as tshark reads them, multiplied by the sampling rate."""
    program = os.environ.get("TSHARK", "tshark")
    if shutil.which(program) is None:
        raise LookupError("tshark is not installed")
    ports = {p.data.dport for p, _ in packets(path) if isinstance(p.data, dpkt.udp.UDP)}
    command = [program, "-r", str(path), "-T", "fields", "-E", "occurrence=a"]
    for port in sorted(ports):
        command += ["-d", f"udp.port=={port},sflow"]
    fields = ("sflow.flow_sample.sampling_rate", "ip.src", "ip.dst", "ip.proto", "ip.len")
    for field in (*fields, "ip.hdr_len", "tcp.hdr_len"):
        command += ["-e", field]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: Bytes = Counter()
    for line in text.splitlines():
        rates, srcs, dsts, protocols, lengths, heads, tcps = (
            each.split(",") for each in line.split("\t")
        )
        if not rates[0]:
            continue
        tcp_heads = iter(tcps)
        # The first header of each row belongs to the sFlow datagram itself, so it is skipped.
        rows = zip(rates, srcs[1:], dsts[1:], protocols[1:], lengths[1:], heads[1:], strict=True)
        for rate, src, dst, protocol, length, head in rows:
            transport = int(next(tcp_heads)) if protocol == "6" else 8
            payload = (int(length) - int(head) - transport) * int(rate)
            a, b = (ipaddress.ip_address(each).packed for each in (src, dst))
            add(found, a, b, int(protocol), payload)
    return found


def of_text(path: Path, folder: Path) -> Bytes:
    """Return the payload of nfdump's text, parsed a second time from its last columns."""
    found: Bytes = Counter()
    for line in path.read_text().splitlines():
        if re.match(r"(2|10)\|", line):
            cells = line.split("|")
            width = 1 if cells[0] == "2" else 4
            words = [cells[8 - width : 8], cells[13 - width : 13]]
            a, b = (b"".join(int(w).to_bytes(4, "big") for w in each) for each in words)
            protocol, number, octets = int(cells[3]), int(cells[-2]), int(cells[-1])
        elif line.count(",") > 40 and line[:2] == "20":
            cells = line.split(",")
            a, b = (ipaddress.ip_address(cells[i]).packed for i in (3, 4))
            protocol = {"TCP": 6, "UDP": 17}.get(cells[7], 0)
            number, octets = int(cells[11]), int(cells[12])
        else:
            continue
        header = (20 if len(a) == 4 else 40) + HEADERS.get(protocol, 0)
        add(found, a, b, protocol, octets - number * header)
    return found


COUNTERS: dict[str, Callable[[Path, Path], Bytes]] = {
    "pcap": lambda path, _: of_capture(path),
    "netflow": of_messages,
    "sflow": of_samples,
    "nfdump": of_text,
}


def compare(path: Path, folder: Path) -> tuple[str, str, str]:
    """Return the format, the contents, and the verdict of one file, as cells of the table."""
    try:
        kind = sniff(path)
        found = read([path], kind, WHOLE, stop=False)
    except InputError as error:
        why = str(error).removeprefix(f"{path}: ").removeprefix(f"{path.name}: ")
        return "", "", f"refused: {why}"
    total = sum(flow.bytes for flow in found.flows)
    told = f"{found.records:,} records, {len(found.flows):,} flows, {total:,} B"
    return kind, told, verdict_on(found, path, folder)


def verdict_on(found: FlowList, path: Path, folder: Path) -> str:
    """Return whether the flows have the payload that the other reader finds, as text."""
    try:
        theirs = COUNTERS[found.source_format](opened(path, folder), folder)
    except (LookupError, dpkt.Error, ValueError, struct.error, subprocess.SubprocessError) as error:
        return f"not compared: {type(error).__name__} of the other reader"
    rate = found.sampling if found.source_format == "netflow" else 1
    theirs = Counter({key: rate * value for key, value in theirs.items()})
    mine = ours(found)
    different = [key for key in mine | theirs if mine[key] != theirs[key]]
    if not different:
        return "equal"
    if any("480 h after" in line for line in found.account.lines()):
        return "not compared: has packets of more than 480 h after the first"
    if path.name in KNOWN:
        return f"different: {KNOWN[path.name]}"
    shown = "; ".join(
        f"{a} to {b} {p}: {mine[a, b, p]:,} and {theirs[a, b, p]:,} B"
        for a, b, p in different[:_MOST_DIFFERENCES]
    )
    return f"{len(different)} of {len(mine | theirs)} pairs differ: {shown}"


def table(data: Path) -> tuple[list[str], bool]:
    """Return the lines of the table, and whether all compared files are equal."""
    lines = ["| file | format | read | compared with the other reader |", "|---|---|---|---|"]
    refused: Counter[tuple[str, str]] = Counter()
    good = True
    with tempfile.TemporaryDirectory(prefix="eastwest-flows-") as folder:
        for path in sorted(p for p in data.rglob("*") if p.is_file()):
            kind, told, verdict = compare(path, Path(folder))
            name = str(path.relative_to(data))
            if verdict.startswith("refused"):
                refused[name.partition("/")[0], re.sub(r"\d[\d,]*", "N", verdict)] += 1
                continue
            good &= not verdict.endswith("B")
            lines.append(f"| `{name}` | {kind} | {told} | {verdict} |")
    lines += ["", "| folder | files | refused because |", "|---|---|---|"]
    lines += [
        f"| `{folder}` | {n} | {why.removeprefix('refused: ')} |"
        for (folder, why), n in refused.most_common()
    ]
    return lines, good


def main() -> int:
    """Compare the files below DATA; return 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", metavar="DATE")
    chosen = parser.parse_args()
    lines, good = table(chosen.data)
    print("\n".join(lines))
    if chosen.write:
        text = PAGE.read_text("utf-8").partition(MARK)[0]
        text += f"{MARK}\n\nRecorded on {chosen.write}.\n\n" + "\n".join(lines) + "\n"
        PAGE.write_text(text, "utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
