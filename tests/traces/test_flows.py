"""Lists of flows from routers and captures: exact if the source is, and estimates named as such."""

from __future__ import annotations

import csv
import gzip
import json
import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import eastwest as ew
import flow_exports as made
import guide_pages
import project_paths
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.traces.flows.collect import FlowList, Part, Wanted
from eastwest.traces.flows.read import networks, read, read_hosts, sniff
from flow_exports import Record, ethernet, ip, tcp, udp

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.10"
#: Bytes of a record with a payload of 1,448 bytes in each packet.
FULL = 1500


def taken(folder: Path, data: bytes, source_format: str = "auto", **wanted: Any) -> FlowList:
    """Return the flows of one file."""
    path = folder / "records"
    path.write_bytes(data)
    found = read([path], source_format, Wanted(**wanted))
    assert found.records == found.used + found.left
    return found


def rows(found: FlowList) -> list[tuple[str, str, int, float]]:
    return [(f.src, f.dst, f.bytes, f.start_s) for f in found.flows]


def said(found: FlowList) -> str:
    return "\n".join(found.account.lines())


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["trace", "flows", *map(str, arguments)])


TRANSFER = [
    (0.0, tcp(A, B, 1000, 80, 99, 0, 0x02)),
    (0.001, tcp(B, A, 80, 1000, 499, 0, 0x12)),
    (0.002, tcp(A, B, 1000, 80, 100, 1000)),
    (0.003, tcp(A, B, 1000, 80, 1100, 500)),
    (0.004, tcp(B, A, 80, 1000, 500, 0)),
    (0.5, tcp(B, A, 80, 1000, 500, 300)),
]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("form", ["us", "ns", "pcapng 6", "pcapng 9"])
def test_a_capture_has_the_payload_of_each_direction(tmp_path: Path, order: str, form: str) -> None:
    if form.startswith("pcapng"):
        data = made.pcapng(TRANSFER, order=order, power=int(form[-1]))
    else:
        data = made.pcap(TRANSFER, order=order, ns=form == "ns")
    found = taken(tmp_path, data)
    assert (found.source_format, found.records, found.used) == ("pcap", 6, 6)
    assert rows(found) == [("0", "1", 1500, 0.0), ("1", "0", 300, pytest.approx(0.498))]
    assert found.hosts == {"0": A, "1": B}
    assert found.began_ns == pytest.approx(made.BEGAN * 1e9 + 2e6, abs=1000)


def test_retransmitted_bytes_count_once_and_gaps_are_filled(tmp_path: Path) -> None:
    def one(*segments: tuple[int, int]) -> FlowList:
        sent = [tcp(A, B, 1, 2, seq % 2**32, n) for seq, n in segments]
        return taken(tmp_path, made.pcap([(i / 1e3, p) for i, p in enumerate(sent)]))

    for base in (5000, 2**32 - 1500):  # The second base makes sequence numbers wrap around.
        parts = [(base + 1000 * i, 1000) for i in range(5)]
        assert one(*parts).flows[0].bytes == 5000
        assert one(*parts, *parts[1:3]).flows[0].bytes == 5000
        late = one(parts[0], *parts[2:], parts[1])  # Reordered: the second segment comes last.
        assert late.flows[0].bytes == 5000
        assert "bytes that were sent before" not in said(late)
        assert one(*parts[:2], (base + 1500, 1000)).flows[0].bytes == 2500
    again = one(*parts, parts[0])
    assert "noted 1 × TCP segment with bytes that were sent before" in said(again)


def test_segments_in_any_order_have_the_bytes_that_they_cover() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        base = chance.randrange(2**32)
        part, covered, total = Part(0, 0, False), set[int](), 0
        total += part.segment(base, 50)
        covered |= set(range(50))
        for _ in range(30):
            at, length = chance.randrange(0, 400), chance.randint(1, 60)
            fresh = part.segment((base + at) % 2**32, length)
            assert fresh == len(set(range(at, at + length)) - covered)
            covered |= set(range(at, at + length))
            total += fresh
        assert total == len(covered)


def test_pauses_and_new_connections_divide_flows(tmp_path: Path) -> None:
    def sent(at: float, seq: int, payload: int = 100, flags: int = 0x10) -> tuple[float, bytes]:
        return at, tcp(A, B, 1, 2, seq, payload, flags)

    data = made.pcap([sent(0, 1), sent(10, 101), sent(30, 201)])
    assert [f.bytes for f in taken(tmp_path, data).flows] == [200, 100]
    assert [f.bytes for f in taken(tmp_path, data, idle_s=25.0).flows] == [300]
    assert [f.start_s for f in taken(tmp_path, data, idle_s=5.0).flows] == [0.0, 10.0, 30.0]
    again = [sent(0, 7, 0, 2), sent(0, 7, 0, 2), sent(1, 8), sent(2, 900, 0, 2), sent(3, 901)]
    assert [f.bytes for f in taken(tmp_path, made.pcap(again)).flows] == [100, 100]
    early = [sent(0, 7, 20, 2), sent(1, 28), sent(2, 8, 20)]  # TCP Fast Open: the SYN carries data.
    assert [f.bytes for f in taken(tmp_path, made.pcap(early)).flows] == [120]


def test_link_layers_and_headers(tmp_path: Path) -> None:
    four, six = tcp(A, B, 1, 2, 5, 0), tcp("2001:db8::1", "2001:db8::2", 1, 2, 5, 0)
    four, six = four + b"x" * 10, six + b"x" * 10
    four = four[:2] + (50).to_bytes(2, "big") + four[4:]
    six = six[:4] + (30).to_bytes(2, "big") + six[6:]
    hop = six[:4] + (38).to_bytes(2, "big") + b"\0" + six[7:40] + b"\6" + bytes(7) + six[40:]
    mpls = bytes(12) + b"\x88\x47" + b"\0\0\x10\x40" + b"\0\0\x21\x40" + four
    cases = [
        (1, ethernet(four)),
        (1, ethernet(four, [5])),
        (1, ethernet(six, [5, 6])),
        (1, mpls),
        (113, bytes(14) + b"\x08\x00" + four),
        (276, b"\x86\xdd" + bytes(18) + six),
        (0, b"\2\0\0\0" + four),
        (228, four),
        (229, hop),
        (101, six),
    ]
    for link, frame in cases:
        found = taken(tmp_path, made.pcap([(0, frame)], link))
        assert [f.bytes for f in found.flows] == [10], (link, frame)
    frames = [(0, ethernet(four)), (1, bytes(12) + b"\x08\x06" + bytes(28))]
    arp = taken(tmp_path, made.pcap(frames, 1))
    assert (arp.records, arp.used) == (2, 1)
    assert "noted 1 × frame without IP, for example ARP or LLDP: " in said(arp)


def test_datagrams_in_fragments_and_large_segments(tmp_path: Path) -> None:
    # The first fragment of a UDP packet with 3,000 bytes of payload and 8 of header.
    first = ip(A, B, 17, b"\0\1\0\2\x0b\xc0\0\0" + bytes(92), 0, 0x2000)
    later = ip(A, B, 17, bytes(100), 0, 13)
    found = taken(tmp_path, made.pcap([(0, first), (0, later)]))
    assert [f.bytes for f in found.flows] == [3000]
    assert (found.records, found.used) == (2, 1)
    large = tcp(A, B, 1, 2, 5, 0)[:2] + b"\0\0" + tcp(A, B, 1, 2, 5, 0)[4:] + bytes(70_000)
    frame = ethernet(large)
    assert taken(tmp_path, made.pcap([(0, frame)], 1)).flows[0].bytes == 70_000


RECORDS = [
    Record(A, B, 1000, 80, 10, 10 * FULL, 0, 900),
    Record(B, A, 80, 1000, 5, 5 * 52, 0, 900),
    Record(A, C, 1001, 80, 4, 4 * 128, 500, 600, 17),
    Record(C, A, 1002, 80, 10, 10 * FULL, 2000, 2100),
]
EXPECTED = [("0", "1", 14480, 0.0), ("0", "2", 400, 0.5), ("2", "0", 14480, 2.0)]


@pytest.mark.parametrize("kind", [made.v5, made.v9, made.ipfix])
@pytest.mark.parametrize("where", ["file", "capture", "compressed"])
def test_records_of_routers(tmp_path: Path, kind: Any, where: str) -> None:
    messages = [kind(RECORDS[:2]), kind(RECORDS[2:])]
    data = b"".join(messages)
    if where == "capture":
        data = made.exported([(0.0, messages[0]), (1.0, messages[1])], 2055, "10.255.0.1")
    found = taken(tmp_path, gzip.compress(data) if where == "compressed" else data)
    assert (found.source_format, found.records, found.used) == ("netflow", 4, 3)
    assert rows(found) == EXPECTED
    assert "noted 1 × flow without payload, for example only acknowledgements" in said(found)
    assert "noted 1 × flow of UDP" in said(found)
    assert found.began_ns == made.BEGAN * 10**9


def test_ipv6_records_and_templates_that_come_later(tmp_path: Path) -> None:
    six = [Record("2001:db8::2", "2001:db8::1", 1, 2, 10, 10 * 1520, 0, 5)]
    for kind in (made.v9, made.ipfix):
        found = taken(tmp_path, kind([*RECORDS, *six]))
        assert found.hosts == {"0": A, "1": B, "2": C, "3": "2001:db8::1", "4": "2001:db8::2"}
        assert ("4", "3", 14480, 0.0) in rows(found)
        data = kind(RECORDS[:1], templates=False) + kind(RECORDS[3:])
        late = taken(tmp_path, data)
        assert (late.records, late.used) == (1, 1)
        assert "noted 1 × data set whose template did not come before it: " in said(late)


def test_sampled_records_are_scaled_and_said_to_be_estimates(tmp_path: Path) -> None:
    for data in (
        made.v5(RECORDS, sampling=100),
        made.v9(RECORDS, sampling=100),
        made.ipfix(RECORDS, sampling=100),
    ):
        found = taken(tmp_path, data)
        assert found.sampling == 100
        assert rows(found) == [(a, b, 100 * n, at) for a, b, n, at in EXPECTED]
        text = said(found)
        assert (
            "noted 3 × flow sampled at 1 in 100: records; sizes are estimates with 95 % confidence"
            ": the error of the sum of all bytes is 43.3 %" in text
        )
        assert "most flows of fewer than 100 packets are missing" in text
    told = taken(tmp_path, made.v5(RECORDS), sampling=10)
    assert rows(told) == [(a, b, 10 * n, at) for a, b, n, at in EXPECTED]


def test_both_directions_of_a_biflow(tmp_path: Path) -> None:
    data = made.ipfix(RECORDS[:1], reverse=[(20, 20 * FULL)])
    assert rows(taken(tmp_path, data)) == [("0", "1", 14480, 0.0), ("1", "0", 28960, 0.0)]
    paired = taken(tmp_path, data, pair=True)
    assert rows(paired) == [("1", "0", 28960, 0.0)]
    assert "noted 1 × smaller direction of a connection" in said(paired)


def test_parts_of_the_smaller_direction_are_left_out_together(tmp_path: Path) -> None:
    def sent(at: float, up: bool, seq: int, payload: int) -> tuple[float, bytes]:
        ends = (A, B, 1000, 80) if up else (B, A, 80, 1000)
        return at, tcp(*ends, seq, payload)

    answers = [sent(i, False, 1000 * i, 1000) for i in range(41)]
    asked = [sent(0, True, 5, 100), sent(35, True, 105, 100)]
    data = made.pcap(sorted([*answers, *asked]))
    assert len(taken(tmp_path, data).flows) == 3
    paired = taken(tmp_path, data, pair=True)
    assert [(f.src, f.bytes) for f in paired.flows] == [("1", 41_000)]


def test_records_of_a_long_flow_are_merged(tmp_path: Path) -> None:
    parts = [Record(A, B, 1, 2, 10, 10 * FULL, 60_000 * i, 60_000 * i + 59_000) for i in range(3)]
    apart = Record(A, B, 1, 2, 10, 10 * FULL, 300_000, 300_100)
    found = taken(tmp_path, made.v9([parts[2], apart, parts[0], parts[1]]))
    assert rows(found) == [("0", "1", 3 * 14480, 0.0), ("0", "1", 14480, 300.0)]
    assert "noted 2 × record that continues a flow" in said(found)
    assert found.used == 4


def test_a_flow_that_two_routers_report_counts_once(tmp_path: Path) -> None:
    mine = [Record(A, B, 1, 2, 10, 10 * FULL, 0, 500)]
    theirs = [Record(A, B, 1, 2, 12, 12 * FULL, 1, 501), Record(A, C, 1, 2, 9, 9 * FULL, 0, 5)]
    data = made.v9(mine, source=1) + made.v9(theirs, source=2)
    found = taken(tmp_path, data)
    assert rows(found) == [("0", "2", 9 * 1448, 0.0), ("0", "1", 12 * 1448, 0.001)]
    assert (found.records, found.used) == (3, 2)
    assert "record or packet of a flow that another observer also has" in said(found)
    senders = made.exported([(0.0, made.v9(mine))], 2055, "10.255.0.1")
    senders += made.exported([(0.0, made.v9(theirs))], 2055, "10.255.0.2")[24:]
    assert rows(taken(tmp_path, senders)) == rows(found)


def test_captures_that_overlap_are_observers_and_others_one(tmp_path: Path) -> None:
    whole = [(i / 10, tcp(A, B, 1, 2, 1000 * i, 1000)) for i in range(20)]
    halves = [tmp_path / "1.pcap", tmp_path / "2.pcap"]
    for path, part in zip(halves, (whole[:10], whole[10:]), strict=True):
        path.write_bytes(made.pcap(part))
    assert [f.bytes for f in read(halves).flows] == [20_000]
    halves[0].write_bytes(made.pcap(whole))
    found = read(halves)
    assert [f.bytes for f in found.flows] == [20_000]
    assert (found.records, found.used) == (30, 20)


def test_samples_of_sflow(tmp_path: Path) -> None:
    packets = [tcp(A, B, 1000, 80, 1448 * i, 1448) for i in range(30)]
    dns = [udp(B, A, 53, 53, b"", 100)]
    for expanded in (False, True):
        messages = [
            (0.0, made.sflow(packets[:20], 50, expanded=expanded, counters=True)),
            (1.0, made.sflow(packets[20:] + dns, 50, expanded=expanded, up_ms=6000)),
        ]
        found = taken(tmp_path, made.exported(messages, 6343, "10.9.9.9"))
        assert (found.source_format, found.records, found.used) == ("sflow", 31, 31)
        assert rows(found) == [("0", "1", 30 * 1448 * 50, 0.0), ("1", "0", 5000, 1.0)]
        assert "noted 1 × counter sample, or sample in" in said(found)
        assert "noted 2 × flow sampled at 1 in 50" in said(found)
        raw = taken(tmp_path, b"".join(data for _, data in messages))
        assert rows(raw) == rows(found)
        assert "times are uptimes of the agents" in said(raw)


def test_estimates_of_samples_are_within_their_stated_error(tmp_path: Path) -> None:
    chance, inside = random.Random("samples"), 0
    for _ in range(20):
        sampled = [
            tcp(A, B, 1, 2, 1448 * i, 1448) for i in range(20_000) if chance.random() < 1 / 40
        ]
        found = taken(tmp_path, made.sflow(sampled[:4000], 40)).flows[0]
        error = abs(found.bytes / (20_000 * 1448) - 1)
        inside += error <= 1.96 / found.packets**0.5
    assert inside >= 16  # 95 % of 20 intervals are 19; some chance is allowed.


LINE = """Date first seen          Duration Proto      Src IP Addr:Port   \
       Dst IP Addr:Port   Packets    Bytes Flows
2023-11-14 22:13:20.000    0.900 TCP           10.0.0.1:1000  ->         10.0.0.2:80           10\
    15000     1
2023-11-14 22:13:20.000    0.900 TCP           10.0.0.2:80    ->         10.0.0.1:1000          5\
      260     1
2023-11-14 22:13:20.500     00:00:00.100 UDP   10.0.0.1:1001  ->        10.0.0.10:80            4\
      512     1
2023-11-14 22:13:22.000    0.100 TCP          10.0.0.10:1002  ->         10.0.0.1:80           10\
    15000     1
Summary: total flows: 4, total bytes: 30772, total packets: 29, avg bps: 1, avg pps: 1, avg bpp: 1
Time window: 2023-11-14 22:13:20 - 2023-11-14 22:13:22
"""


def nfdump_csv(records: Sequence[Record]) -> str:
    head = "ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt,in,out,ra\n"
    lines = []
    for r in records:
        start, end = 20 + r.first_ms // 1000, 20 + r.last_ms // 1000
        times = f"2023-11-14 22:13:{start},2023-11-14 22:13:{end},{(r.last_ms - r.first_ms) / 1e3}"
        ends = f"{r.src},{r.dst},{r.sport},{r.dport},{'UDP' if r.protocol == 17 else 'TCP'}"
        lines.append(f"{times},{ends},...AP.S.,0,0,{r.packets},{r.octets},0,0,0,0,0.0.0.0\n")
    return head + "".join(lines) + "Summary\nflows,bytes,packets,avg_bps,avg_pps,avg_bpp\n1,1,1,1\n"


def nfdump_pipe(records: Sequence[Record]) -> str:
    lines = []
    for r in records:
        words = [int.from_bytes(r.addresses[i : i + 4], "big") for i in (0, 4)]
        times = f"{made.BEGAN * 1000 + r.first_ms}|{made.BEGAN * 1000 + r.last_ms}"
        ends = f"{r.protocol}|0|0|0|{words[0]}|{r.sport}|0|0|0|{words[1]}|{r.dport}"
        lines.append(f"2|{times}|{ends}|0|0|1|2|26|0|{r.packets}|{r.octets}\n")
    return "".join(lines)


def test_text_of_nfdump(tmp_path: Path) -> None:
    for text in (LINE, nfdump_csv(RECORDS), nfdump_pipe(RECORDS)):
        found = taken(tmp_path, text.encode())
        assert (found.source_format, found.records, found.used) == ("nfdump", 4, 3)
        times = [0.0, 0.0, 2.0] if text.startswith("ts,") else [0.0, 0.5, 2.0]
        assert rows(found) == [
            (a, b, n, at) for (a, b, n, _), at in zip(EXPECTED, times, strict=True)
        ]
        assert found.flows[0].end_s == 0.9


def test_other_lines_of_nfdump(tmp_path: Path) -> None:
    head = "2023-11-14 22:13:20.000 0.9 "
    six = "TCP 2001:db8::1.1000 -> 2001:db8::2.80 "
    cases = [
        ("TCP 10.0.0.1:1000 -> 10.0.0.2:80 ...AP.S. 0 10 15000 1", [14480]),
        ("6 10.0.0.1:1000 -> 10.0.0.2:80 ...AP.S. 0 10 15000 11 133333 1500 1", [14480]),
        ("TCP 10.0.0.1:1000 -> 10.0.0.2:80 1.0 M 1.5 G 1", [1_500_000_000 - 52_000_000]),
        ("TCP 10.0.0.1:1000 <-> 10.0.0.2:80 20 10 30000 15000 2", [14480, 28960]),
        (six + "10 15200 1", [14480]),
    ]
    for text, expected in cases:
        found = taken(tmp_path, (head + text + "\n").encode())
        assert [f.bytes for f in found.flows] == expected, text
    text = (
        head
        + "TCP 10.0.0.1:1 -> 10.0.0.2:2 10 15000 1\n"
        + head
        + "ICMP 10.0.0.1:0 -> 10.0.0.2:8.0 1 84 1\n"
    )
    found = taken(tmp_path, text.encode())
    assert "noted 1 × record or packet of another protocol than TCP and UDP" in said(found)
    assert "records:2; it is left out" in said(found)
    assert "rounded to tenths" in said(taken(tmp_path, (head + cases[2][0] + "\n").encode()))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("2023-11-14 22:13:20.000 0.9 TCP 10.0.0.1:1 -> 10.0.0.2:99999 1 60 1", "port that is not"),
        ("2023-11-14 22:13:20.000 0.9 TCP 10.0.0.1:1 -> 10.0.0.999:2 1 60 1", "is neither IPv4"),
        ("2023-11-14 22:13:20.000 0.9 TCP 2001:db..0:1.8 -> 2001:db..0:2.9 1 60 1", "nfdump -6"),
        ("2023-13-14 22:13:20.000 0.9 TCP 10.0.0.1:1 -> 10.0.0.2:2 1 60 1", "without date"),
        ("2023-11-14 22:13:20.000 0.9 TCP 10.0.0.1:1 -> 10.0.0.2:2 1 60", "number of columns"),
        ("2023-11-14 22:13:20.000 0.9 TCP 10.0.0.1:1 -> 10.0.0.2:2 -1 60 1", "are not a number"),
        (
            "2023-11-14 22:13:20.000 0.9 TCP 10.0.0.1:1 -> 2001:db8::1.2 1 60 1",
            "one IPv4 and one IPv6 address",
        ),
        ("hello world", "not in a format of nfdump"),
    ],
)
def test_rows_that_cannot_be_used(tmp_path: Path, row: str, expected: str) -> None:
    path = tmp_path / "x.txt"
    path.write_text(LINE.partition("Summary")[0] + row + "\n")
    with pytest.raises(InputError, match=expected) as error:
        read([path])
    assert "x.txt:6: " in str(error.value)
    found = read([path], stop=False)
    assert len(found.flows) == 3
    assert found.account.rows_skipped == 1


def test_addresses_that_are_no_hosts_of_the_list(tmp_path: Path) -> None:
    others = [
        Record(A, "224.0.0.5", 1, 2, 1, 100, 0, 0),
        Record(A, A, 1, 2, 1, 100, 0, 0),
        Record(A, "192.0.2.1", 1, 2, 1, 100, 0, 0),
    ]
    data = made.v9([*RECORDS, *others])
    found = taken(tmp_path, data, within=networks(["10.0.0.0/28"]))
    assert rows(found) == EXPECTED
    assert (found.records, found.used) == (7, 3)
    for reason in ("multicast, broadcast", "from an address to itself", "outside of --within"):
        assert reason in said(found)
    (tmp_path / "hosts.csv").write_text(f"address,host\n{A},left\n{B}/24,right\n")
    known = taken(tmp_path, data, hosts=read_hosts(tmp_path / "hosts.csv"))
    assert rows(known) == [("left", "right", 14480, 0.0)]
    assert known.hosts == {"left": A, "right": B}
    assert "with an address that is not in the file of --hosts" in said(known)
    (tmp_path / "hosts.csv").write_text(f"address,host\n{A},one\n{B},one\n{C},two\n")
    joined = taken(tmp_path, data, hosts=read_hosts(tmp_path / "hosts.csv"))
    assert {(f.src, f.dst) for f in joined.flows} == {("one", "two"), ("two", "one")}
    assert "noted 1 × flow between two addresses of one host" in said(joined)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host\nh0\n", ":1: has no column address"),
        ("host,address\nh0,10.0.0.300\n", ":2: '10.0.0.300' is not an address"),
        ("host,address\n,10.0.0.3\n", ":2: host must be a name"),
        (
            "host,address\na,10.0.0.3\nb,10.0.0.3\n",
            ":3: the address 10.0.0.3 already belongs to the host a",
        ),
        ("host,address\n", "has no row with a host"),
    ],
)
def test_files_of_hosts_that_cannot_be_used(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "hosts.csv").write_text(text)
    with pytest.raises(InputError, match=expected):
        read_hosts(tmp_path / "hosts.csv")


def test_numbers_of_hosts_do_not_depend_on_the_order(tmp_path: Path) -> None:
    chance = random.Random(1)
    records = [
        Record(
            f"10.0.{chance.randrange(300) // 2}.9",
            f"10.1.0.{i}",
            i,
            80,
            9,
            9 * FULL,
            10 * i,
            10 * i + 1,
        )
        for i in range(1, 100)
    ]
    first = taken(tmp_path, made.v9(records))
    chance.shuffle(records)
    second = taken(tmp_path, made.v9(records))
    assert (first.flows, first.hosts) == (second.flows, second.hosts)


SAMPLES = {
    "pcap": made.pcap(TRANSFER),
    "pcapng": made.pcapng(TRANSFER),
    "v5": made.v5(RECORDS) * 2,
    "v9": made.v9(RECORDS) * 2,
    "ipfix": made.ipfix(RECORDS) * 2,
    "sflow": made.sflow([p for _, p in TRANSFER]) * 2,
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_truncated_files_are_read_as_far_as_they_go(tmp_path: Path, kind: str) -> None:
    whole = SAMPLES[kind]
    source = {"pcapng": "pcap", "v5": "netflow", "v9": "netflow", "ipfix": "netflow"}.get(
        kind, kind
    )
    before = noted = read_ = 0
    for length in range(1, len(whole), 1 + len(whole) // 120):
        try:
            found = taken(tmp_path, whole[:length], source)
        except InputError as error:
            assert str(error).startswith("records: has no flow") or str(tmp_path) in str(error)
            continue
        assert found.records >= before
        before = found.records
        read_ += 1
        noted += "ends inside" in said(found)
    assert before > 0
    assert noted > 0.7 * read_


def test_damage_is_named_with_its_position(tmp_path: Path) -> None:
    message = made.v9(RECORDS)
    long = made.ipfix(RECORDS)[:18] + b"\xff\xff" + made.ipfix(RECORDS)[20:]
    cases = [
        (message + b"\0\3" + bytes(30), f"records:2: message of version 3.*byte {len(message)}"),
        (made.pcap(TRANSFER)[:24] + bytes(8) + b"\xff" * 8, "records:1: the header of a packet is"),
        (
            long,
            "records:1: message with a set of less than 4 bytes, or longer than the message",
        ),
    ]
    for data, expected in cases:
        kind = "pcap" if data[:1] == b"\xd4" else "netflow"
        with pytest.raises(InputError, match=expected):
            taken(tmp_path, data, kind)
    path = tmp_path / "records"
    path.write_bytes(message + b"\0\3" + bytes(30))
    assert len(read([path], stop=False).flows) == 3


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    cases = [
        (b"", "is empty"),
        (b"\x0c\xa5\1\0" + bytes(40), "nfdump -r FILE -o csv"),
        (b"Dear diary\n", "has no known format .*--format names one.*; it starts with 'Dear"),
        (bytes(range(256)), "has no known format .*; it starts with"),
    ]
    for data, expected in cases:
        with pytest.raises(InputError, match=expected):
            taken(tmp_path, data)
    (tmp_path / "a").write_bytes(made.v5(RECORDS))
    (tmp_path / "b").write_bytes(made.pcap(TRANSFER))
    with pytest.raises(InputError, match="of different formats"):
        read([tmp_path / "a", tmp_path / "b"])
    assert [sniff(tmp_path / name) for name in "ab"] == ["netflow", "pcap"]


def test_the_list_runs_and_its_account_adds_up(tmp_path: Path) -> None:
    (tmp_path / "router.bin").write_bytes(made.v9(RECORDS))
    result = run(tmp_path / "router.bin", "-o", tmp_path / "flows.csv")
    assert result.exit_code == 0, result.output
    assert "3 flows of 29.4 kB, 3 hosts from netflow" in result.output
    assert "3 of 4 records or packets are in these flows" in result.output
    with (tmp_path / "flows.hosts.csv").open() as file:
        assert [row["address"] for row in csv.DictReader(file)] == [A, B, C]
    about = json.loads((tmp_path / "flows.account.json").read_text())
    assert (about["records"], about["records_in_flows"], about["flows"]) == (4, 3, 3)
    assert {each["reason"] for each in about["noted"]} == {
        "flow of UDP",
        "flow without payload, for example only acknowledgements",
    }
    (tmp_path / "s.toml").write_text(
        'schema = 1\n[fabric]\nkind = "star"\nhosts = 3\nhost_rate = "1 Gbit/s"\n'
        '[[workload]]\nname = "recorded"\nkind = "flow-list"\nfile = "flows.csv"\n'
    )
    ran = ew.run(tmp_path / "s.toml", out=tmp_path / "out").flows.sort("start_s")
    assert ran.select("src", "dst", "bytes", "start_s").rows() == [
        (0, 1, 14480, 0.0),
        (0, 2, 400, 0.5),
        (2, 0, 14480, 2.0),
    ]
    assert "already exists" in run(tmp_path / "router.bin", "-o", tmp_path / "flows.csv").output
    same = run(tmp_path / "router.bin", "-o", tmp_path / "router.bin", "--force")
    assert same.exit_code == 2 and "is an input of this command" in same.output
    again = run(tmp_path / "router.bin", "-o", tmp_path / "flows.csv", "--force", "--pair")
    assert again.exit_code == 0
    assert (
        "--format netflw"
        in run(tmp_path / "router.bin", "-o", tmp_path / "x.csv", "--format", "netflw").output
    )


def files_of_the_guide(folder: Path) -> None:
    """Write the files that docs/guide/flows-from-routers.md names."""
    (folder / "nfcapd.txt").write_text(nfdump_pipe(RECORDS))
    (folder / "hosts.csv").write_text(f"host,address\nleft,{A}\nright,{B}\n")
    (folder / "collector.pcap").write_bytes(
        made.exported([(0.0, made.v9(RECORDS))], 2055, "10.255.0.1")
    )
    (folder / "host.pcap").write_bytes(made.pcap(TRANSFER))
    sampled = [tcp(A, B, 1000, 80, 1448 * i, 1448) for i in range(500)]
    few = [tcp(C, B, 1001, 80, 1448 * i, 1448) for i in range(20)]
    datagrams = [
        made.sflow([*sampled[i : i + 50], *few[i // 25 : i // 25 + 2]], 1000)
        for i in range(0, 500, 50)
    ]
    (folder / "sflow.pcap").write_bytes(
        made.exported([(i / 10, data) for i, data in enumerate(datagrams)], 6343, "10.9.9.9")
    )


@pytest.mark.slow
def test_commands_of_the_guide_run_and_print_what_it_shows(tmp_path: Path) -> None:
    page = project_paths.ROOT / "docs" / "guide" / "flows-from-routers.md"
    files_of_the_guide(tmp_path)
    assert guide_pages.renewed(page, tmp_path) == page.read_text("utf-8")
    shown = page.read_text("utf-8").partition("```csv\n")[2].partition("```")[0]
    assert (tmp_path / "flows.csv").read_text() == shown


def test_templates_and_addresses_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eastwest.traces.flows import collect, netflow  # noqa: PLC0415

    many = b"".join(made.v9(RECORDS[:1], source=n) for n in range(30))
    monkeypatch.setattr(netflow, "_MOST_TEMPLATES", 20)
    with pytest.raises(InputError, match="more than 20 templates"):
        taken(tmp_path, many)
    monkeypatch.setattr(collect, "MOST_FLOWS", 2)
    with pytest.raises(InputError, match="more than 2 flows"):
        taken(tmp_path, made.v5(RECORDS))
    monkeypatch.setattr(collect, "MOST_ADDRESSES", 2)
    with pytest.raises(InputError, match="more than 2 addresses"):
        taken(tmp_path, made.v5(RECORDS))


def test_records_with_impossible_times_are_damaged(tmp_path: Path) -> None:
    good = Record(A, B, 1, 2, 10, 10 * FULL, 0, 1000)
    late, wrapped = Record(A, C, 1, 2, 10, 10 * FULL, 5000, 0), made.v5([good])
    for data in (made.v5([good, late]), made.v9([good, late]), nfdump_csv([good, late]).encode()):
        with pytest.raises(InputError, match="record whose last packet is before its first, or"):
            taken(tmp_path, data)
        found = read([tmp_path / "records"], stop=False)
        assert (found.records, found.used, found.left) == (2, 1, 1)
        assert rows(found) == [("0", "1", 14480, 0.0)]
        assert "left out 1 × record whose last packet is before its first" in said(found)
    # The counter of ms wraps 1 s after the first packet, and 2 s before the message.
    head = struct.pack(">HHIIIIHH", 5, 1, 2000, made.BEGAN, 0, 0, 0, 0)
    times = struct.pack(">II", 2**32 - 1000, 500)
    found = taken(tmp_path, head + wrapped[24:48] + times + wrapped[56:])
    assert (found.began_ns, found.flows[0].end_s) == ((made.BEGAN - 3) * 10**9, 1.5)
    fields = (*made.V4, (152, 8), (153, 8))
    far = wrapped[24:32] + struct.pack(">HHBQQQQ", 1, 2, 6, 10, 15000, 2**63, 5)
    sets = made.flow_set(2, made.template(256, fields)) + made.flow_set(256, far)
    data = struct.pack(">HHIII", 10, 16 + len(sets), made.BEGAN, 0, 1) + sets
    with pytest.raises(InputError, match="record with a time after the year 2262"):
        taken(tmp_path, data)


def test_a_list_without_flows_says_why(tmp_path: Path) -> None:
    record = Record(A, B, 1, 2, 10, 10 * FULL, 0, 1000)
    text = nfdump_csv([record]).encode()
    multicast = made.pcap([(0.0, udp(A, "239.1.1.1", 1, 2, b"x"))])
    other = made.pcap([(0.0, ethernet(tcp(A, B, 1, 2, 0, 5)))], link=147)
    alone = struct.pack(">HHIII", 10, 16 + 44, made.BEGAN, 0, 1) + made.flow_set(256, bytes(40))
    huge = made.v9([Record(A, B, 1, 2, 10, 2**64 - 1, 0, 1000)])
    cases: list[tuple[bytes, dict[str, Any], str]] = [
        (text, {"least": 10**6}, "1 × flow of less than 1000000 bytes"),
        (text, {"within": networks(["192.0.2.0/24"])}, "with an address outside of --within"),
        (alone, {}, "1 × data set whose template did not come before it"),
        (multicast, {}, "1 × record or packet with a multicast"),
        (other, {}, "1 × packet of link-layer type 147"),
        (huge, {}, "1 × flow of more than 1,000 TB"),
        (made.pcap([]), {}, "there is no record or packet"),
    ]
    for data, wanted, why in cases:
        with pytest.raises(InputError, match=rf"has no flow .*: .*{why}"):
            taken(tmp_path, data, **wanted)


@pytest.mark.parametrize(("samples", "error"), [(1, "196 %"), (2, "139 %"), (3, "113 %")])
def test_the_error_of_few_samples_is_not_cut(tmp_path: Path, samples: int, error: str) -> None:
    record = Record(A, B, 1, 2, samples, samples * FULL, 0, 1000)
    found = taken(tmp_path, made.v5([record], 1000))
    for text in (f"error of the sum of all bytes is {error}", "10 % for 1 flow with fewer than"):
        assert text in said(found)
