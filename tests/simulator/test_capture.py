"""Captures of simulated ports, read by the real tshark."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import eastwest as ew

LOSSY = """
schema = 1
name = "lossy"
[fabric]
kind = "star"
hosts = 9
host_rate = "1 Gbit/s"
queue = { limit = "30 packets" }
[[workload]]
name = "incast"
kind = "incast"
receiver = "h8"
block_bytes = "600 KB"
rounds = 2
"""

#: Reader: file, wanted fields, filter, further options → values of every matching packet.
Read = Callable[..., list[list[str]]]


@pytest.fixture
def tshark(tool: Callable[..., str]) -> Read:
    """Return fields of the packets of a capture that a display filter lets through."""
    program = tool("tshark")

    def read(file: Path, fields: str, where: str = "frame", *more: str) -> list[list[str]]:
        wanted = [part for field in fields.split() for part in ("-e", field)]
        command = [program, "-r", str(file), "-Y", where, "-T", "fields", *wanted, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        return [line.split("\t") for line in done.stdout.splitlines()]

    return read


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> ew.Result:
    """Return a run with losses, with captures at the sender's and the receiver's cable."""
    folder = tmp_path_factory.mktemp("capture")
    (folder / "lossy.toml").write_text(LOSSY)
    ports = '["h3->switch0", "switch0->h3"]'
    return ew.run(folder / "lossy.toml", set={"measure.capture": ports}, out=folder / "sender")


def test_tshark_finds_nothing_malformed(lossy: ew.Result, tshark: Read) -> None:
    file = lossy.path / "capture.pcapng"
    packets = tshark(file, "frame.interface_name frame.len frame.cap_len")
    assert len(packets) == lossy.summary["capture"]["packets"]
    seen = Counter(packet[0] for packet in packets)
    carried = dict(lossy.links.select("name", "packets").iter_rows())
    assert seen == {name: carried[name] for name in ("h3->switch0", "switch0->h3")}
    assert max(int(packet[2]) for packet in packets) <= 94 < max(int(p[1]) for p in packets)
    assert tshark(file, "frame.number", "_ws.malformed || _ws.expert.severity >= error") == []
    # Payload is not captured, so only checksums of headers can be checked.
    sums = ("-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE")
    status = tshark(file, "ip.checksum.status tcp.checksum.status tcp.len", "frame", *sums)
    assert {(ip, tcp) for ip, tcp, length in status if length == "0"} == {("1", "1")}
    assert {ip for ip, _, _ in status} == {"1"}


def test_addresses_ports_and_names_tell_host_and_connection(lossy: ew.Result, tshark: Read) -> None:
    file = lossy.path / "capture.pcapng"
    fields = "ip.src ip.src_host tcp.srcport ip.dst ip.dst_host tcp.dstport"
    ends = {tuple(p) for p in tshark(file, fields, "tcp.len > 0", "-N", "n")}
    number = lossy.flows.filter(pl.col("src") == 3)["connection"].unique().to_list()
    assert len(number) == 1
    assert ends == {("10.0.0.4", "h3", str(49_152 + number[0]), "10.0.0.9", "h8", "40000")}


def test_tcp_analysis_agrees_with_the_counters(lossy: ew.Result, tshark: Read) -> None:
    file = lossy.path / "capture.pcapng"
    sent = lossy.flows.filter(pl.col("src") == 3)
    again = "tcp.analysis.retransmission || tcp.analysis.out_of_order"
    assert sent["retransmits"].sum() > 10
    assert len(tshark(file, "frame.number", again)) == sent["retransmits"].sum()
    # No packet is missing before the queue.
    missing = "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment"
    assert tshark(file, "frame.number", missing) == []
    sizes = {size for (size,) in tshark(file, "tcp.window_size", "tcp.flags.syn == 0")}
    assert sizes == {"1000000"}
    # Payload bytes that were sent, retransmissions included.
    payload = sum(int(p[0]) for p in tshark(file, "tcp.len", "tcp.srcport >= 49152"))
    repeated = sum(int(p[0]) for p in tshark(file, "tcp.len", again))
    assert payload - repeated == sent["bytes"].sum()
    options = tshark(
        file,
        "tcp.options.mss_val tcp.options.wscale.multiplier tcp.options.sack_perm",
        "tcp.flags.syn == 1",
    )
    assert [o[:2] for o in options] == [["1460", "16"]] * 2
    assert all(o[2] for o in options)
    acknowledged = tshark(file, "tcp.options.sack.count tcp.analysis.duplicate_ack", "tcp.ack")
    assert sum(1 for count, _ in acknowledged if count) > 10


def test_behind_the_queue_segments_are_missing(tmp_path: Path, tshark: Read) -> None:
    (tmp_path / "lossy.toml").write_text(LOSSY)
    ports = '["h8->switch0", "switch0->h8"]'
    result = ew.run(tmp_path / "lossy.toml", set={"measure.capture": ports}, out=tmp_path / "r")
    file = result.path / "capture.pcapng"
    gaps = tshark(file, "frame.number", "tcp.analysis.lost_segment")
    # Consecutive lost segments leave one gap, and no gap if no segment followed them.
    drops = result.events.filter((pl.col("what") == "drop") & (pl.col("kind") == "data"))
    lost = drops.sort("connection", "stream_start")
    follows = (pl.col("stream_start") == (pl.col("stream_start") + pl.col("bytes")).shift(1)) & (
        pl.col("connection") == pl.col("connection").shift(1)
    )
    runs = lost.filter(~follows.fill_null(value=False)).height
    assert 50 < 0.9 * runs <= len(gaps) <= runs


def test_without_ports_there_is_no_capture(tmp_path: Path) -> None:
    (tmp_path / "lossy.toml").write_text(LOSSY)
    result = ew.run(tmp_path / "lossy.toml", out=tmp_path / "r")
    assert not (result.path / "capture.pcapng").exists()
    assert result.summary["capture"] == {"packets": 0, "left_out": 0}


def test_throughput_over_time_is_what_tshark_counts(tmp_path: Path, tshark: Read) -> None:
    asked = {
        "measure.capture": "switch0->h8",
        "measure.flow_samples": "*",
        "measure.flow_samples_interval": "500 us",
        "fabric.processing_jitter": "0 s",
    }
    (tmp_path / "lossy.toml").write_text(LOSSY)
    result = ew.run(tmp_path / "lossy.toml", set=asked, out=tmp_path / "result")
    assert result.summary["packets"]["dropped"] > 50
    fields = "frame.time_epoch ip.src tcp.seq tcp.len"
    packets = tshark(result.path / "capture.pcapng", fields, "tcp.len > 0")
    expect: Counter[tuple[int, int]] = Counter()
    seen = {host: bytearray(2_000_000) for host in range(8)}
    for time, address, first, length in packets:
        seconds, _, nanoseconds = time.partition(".")
        at = int(seconds) * 10**9 + int(nanoseconds.ljust(9, "0")[:9])
        host = int(address.rpartition(".")[2]) - 1
        # Every byte is counted once, when it first arrives.
        place = slice(int(first), int(first) + int(length))
        expect[host, -(-at // 500_000)] += seen[host][place].count(0)
        seen[host][place] = b"\1" * int(length)
    to_h8 = result.flow_samples.filter(pl.col("dst") == 8)
    found = {
        (src, round(time_s / 500e-6)): size
        for time_s, src, size in to_h8.select("time_s", "src", "bytes").iter_rows()
    }
    assert found == {key: size for key, size in expect.items() if size}
