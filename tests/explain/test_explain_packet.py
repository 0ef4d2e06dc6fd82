"""The way of single packets: the table ``packet_hops`` and its explanation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import eastwest as ew
from eastwest.errors import InputError
from eastwest.explain import explain
from eastwest.explain.packet import parse
from project_paths import ROOT

#: Five senders write at once to one receiver through a queue of ten packets.
INCAST = """
schema = 1
name = "burst"
[fabric]
kind = "star"
hosts = 6
host_rate = "1 Gbit/s"
host_delay = "5 us"
queue = { kind = "drop-tail", limit = "10 packets" }
processing_jitter = "0 s"
[[workload]]
name = "burst"
kind = "incast"
receiver = "h5"
rounds = 2
block_bytes = "100 kB"
request_bytes = "0 B"
"""


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory) -> ew.Result:
    out = tmp_path_factory.mktemp("runs") / "burst"
    return ew.run(INCAST, set={"measure.packet_hops": "*"}, out=out)


def test_recording_changes_no_digest_and_counts_every_packet(
    burst: ew.Result, tmp_path: Path
) -> None:
    assert ew.run(INCAST, out=tmp_path / "plain").digest == burst.digest
    hops = burst.packet_hops
    assert burst.summary["packet_hop_rows"] == {"rows": hops.height, "left_out": 0}
    assert burst.summary["packet_hops"] == hops.height
    counted = hops.group_by("link").len("rows").sort("link")
    links = burst.links.filter(pl.col("packets") > 0).sort("link")
    assert counted["rows"].to_list() == links["packets"].to_list()


def test_hops_of_a_packet_follow_each_other(burst: ew.Result) -> None:
    times = burst.packet_hops.sort("packet", "hop").with_columns(
        pl.col("arrived_s").shift().over("packet").alias("before_s"),
        pl.col("hop").shift().over("packet").alias("before"),
    )
    later = times.filter(pl.col("hop") > 0)
    assert later.height > 0
    assert (later["hop"] == later["before"] + 1).all()
    took = (later["arrived_s"] - later["before_s"]) * 1e6
    parts = later["waited_us"] + later["transmission_us"] + later["propagation_us"]
    assert (took - parts).abs().max() == pytest.approx(0, abs=1e-5)
    assert (times["propagation_us"] == 5.0).all()
    # A full segment has 1,500 B of IP and 38 B of framing: 12.304 µs at 1 Gbit/s.
    full = times.filter(pl.col("bytes") == pl.col("bytes").max())
    assert full["transmission_us"].unique().to_list() == pytest.approx([12.304])


def test_waiting_agrees_with_the_waiting_times_of_the_port(tmp_path: Path) -> None:
    wanted = {"measure.packet_hops": "*", "measure.ports": "switch0->h5"}
    result = ew.run(INCAST, set=wanted, out=tmp_path / "r")
    port = result.links.filter(pl.col("name") == "switch0->h5")["link"][0]
    waits = result.packet_hops.filter(pl.col("link") == port)["waited_us"]
    sojourn = result.sojourn.filter(pl.col("link") == port)
    # The histogram has all packets that left the port; the last ones have not arrived.
    assert 0 <= sojourn["count"].sum() - waits.len() <= 1
    mean = np.average(sojourn["upper_us"].to_numpy(), weights=sojourn["count"].to_numpy())
    assert waits.to_numpy().mean() == pytest.approx(mean, rel=0.02)


def test_a_lost_byte_has_the_story_of_all_its_packets(burst: ew.Result) -> None:
    lost = burst.events.filter((pl.col("what") == "drop") & (pl.col("kind") == "data")).row(
        0, named=True
    )
    flow = burst.flows.filter(
        (pl.col("connection") == lost["connection"])
        & (pl.col("stream_start") <= lost["stream_start"])
        & (pl.col("stream_start") + pl.col("bytes") > lost["stream_start"])
    ).row(0, named=True)
    byte = lost["stream_start"] - flow["stream_start"]
    story = explain(burst, "packet", f"{flow['flow']}@{byte}")
    packets = story.facts["packets"]
    assert len(packets) >= 2
    assert packets[0]["kind"] == "data"
    assert packets[-1]["kind"] == "retransmission"
    assert [hop["name"] for hop in packets[0]["hops"]] == [f"h{flow['src']}->switch0"]
    assert story.facts["hops"] == packets[-1]["hops"]
    assert [hop["name"] for hop in packets[-1]["hops"]][-1] == "switch0->h5"
    assert story.total_us == pytest.approx(sum(part.us for part in story.parts))
    assert any("lost at switch0->h5: the queue was full" in m.text for m in story.moments)


def test_a_result_without_the_table_is_simulated_again(tmp_path: Path) -> None:
    result = ew.run(INCAST, out=tmp_path / "r")
    unknown = explain(result, "packet", "0@0")
    assert unknown.facts["hops"] == []
    assert "longer than the limit" in unknown.unknown[0]
    story = explain(result, "packet", "0", rerun_s=60)
    assert [hop["name"].split("->")[1] for hop in story.facts["hops"]] == ["switch0", "h5"]


def test_rows_are_limited(tmp_path: Path) -> None:
    wanted: dict[str, str | int] = {"measure.packet_hops": "h0->h5", "measure.packet_hops_rows": 7}
    result = ew.run(INCAST, set=wanted, out=tmp_path / "r")
    assert result.packet_hops.height == 7
    assert result.packet_hops["src"].unique().to_list() == [0]
    assert result.summary["packet_hop_rows"]["left_out"] > 0


@pytest.mark.parametrize(
    "id", ["", "x", "1@", "@1", "1@-1", "1@2@3", "1@5,79", "1@,792", "9" * 30, "١@0"]
)
def test_wrong_ids_are_refused(id: str) -> None:
    with pytest.raises(InputError, match="is not a packet: name a flow and a byte"):
        parse(id)


def test_numbers_may_have_commas() -> None:
    assert parse("1,031@5,792") == parse("1031@5792") == (1031, 5792)
    assert parse("31") == (31, 0)


def test_a_byte_outside_the_flow_is_refused(burst: ew.Result) -> None:
    with pytest.raises(InputError, match=r"flow 0 has no byte 100000; its bytes are 0 to 99999"):
        explain(burst, "packet", "0@100000")


def test_rocev2_and_datagrams_have_hops(tmp_path: Path) -> None:
    result = ew.run("rocev2", set={"measure.packet_hops": "*", "duration": "200 us"},
                    out=tmp_path / "r")  # fmt: skip
    hops = result.packet_hops
    assert hops.height > 100
    assert (hops["connection"] >= 0).any()


def test_a_trimmed_packet_has_all_its_hops_and_has_not_arrived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"h{n},h8,60000,0" for n in range(8)]
    Path("flows.csv").write_text("src,dst,bytes,start_s\n" + "\n".join(rows) + "\n")
    result = ew.run(
        'schema = 1\n[fabric]\nkind = "star"\nhosts = 9\nhost_rate = "10 Gbit/s"\n'
        'host_delay = "1 us"\nqueue = { kind = "trim", limit = "20 packets" }\n'
        '[measure]\npacket_hops = "*"\n[[workload]]\nname = "flows"\nkind = "flow-list"\n'
        'file = "flows.csv"\ntransport = "rocev2"\n',
        mechanisms=[ROOT / "docs" / "examples" / "mechanisms" / "trim.py"],
        out=tmp_path / "r",
    )
    cut = result.packet_hops.filter((pl.col("hop") == 1) & (pl.col("bytes") == 0))
    packets = result.packet_hops.filter(
        (pl.col("hop") == 0) & pl.col("packet").is_in(cut["packet"].implode())
    )
    flow = result.flows.row(0, named=True)
    own = packets.filter(
        (pl.col("connection") == flow["connection"]) & (pl.col("src") == flow["src"])
    )
    often = own.group_by("stream_start").len().sort("len").row(-1)
    story = explain(result, "packet", f"{flow['flow']}@{often[0] - flow['stream_start']}")
    packets_told = story.facts["packets"]
    assert [hop["bytes"] for hop in packets_told[0]["hops"]] == [1024, 0]
    assert [hop["bytes"] for hop in story.facts["hops"]] == [1024, 1024]
    assert story.facts["hops"] in [packet["hops"] for packet in packets_told]
    assert "that arrived has 1.02 kB of payload and crossed 2 links" in story.summary
    sent = result.packet_hops.filter(
        (pl.col("hop") == 0)
        & (pl.col("connection") == flow["connection"])
        & (pl.col("src") == flow["src"])
        & (pl.col("stream_start") == often[0])
    ).height
    assert sent > 20 and f"The byte was in {sent:,} packets that left the host" in story.summary
    assert "without its payload (trimmed)" in story.sections[0].lines[1]
    assert any(f"{sent - 20:,} further packets" in text for text in story.unknown)
