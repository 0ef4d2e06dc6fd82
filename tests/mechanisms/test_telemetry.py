"""Telemetry of switches in ACKs: its numbers against the tables of the run, and HPCC."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import eastwest as ew
from project_paths import ROOT

HPCC = ROOT / "docs" / "examples" / "mechanisms" / "hpcc.py"
SEEN: list[list[ew.HopTelemetry]] = []


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each test has an empty folder and no records."""
    monkeypatch.chdir(tmp_path)
    SEEN.clear()


class Window(ew.Congestion):
    """Keeps a window of a number of segments."""

    name = "window"

    segments: int = 20

    def observe(self, seen: ew.Seen) -> int | None:
        """Return the window."""
        assert not seen.telemetry
        return self.segments * self.segment


class Reader(Window):
    """Keeps a window, and stores the telemetry of its ACKs."""

    name = "reader"
    reads_telemetry = True

    def observe(self, seen: ew.Seen) -> int | None:
        """Return the window."""
        if seen.telemetry:
            SEEN.append(list(seen.telemetry))
            assert max(hop.time_ps for hop in seen.telemetry) < seen.now_ps
        return self.segments * self.segment


def incast(senders: int, tcp: str, queue: str = 'limit = "1000 packets"', more: str = "") -> str:
    """Return a scenario in which all but one hosts of a star send to the last one for 20 ms."""
    pairs = ", ".join(f'"h{n}->h{senders}"' for n in range(senders))
    return (
        f'schema = 1\n[fabric]\nkind = "star"\nhosts = {senders + 1}\nhost_rate = "10 Gbit/s"\n'
        f'host_delay = "1 us"\nqueue = {{ {queue} }}\n'
        f"[tcp]\nack_every = 1\n{tcp}\n{more}\n"
        f'[[workload]]\nname = "bulk"\nkind = "bulk"\npairs = [{pairs}]\nduration = "20 ms"\n'
        f'start_window = "0 s"\n[measure]\nsample_interval = "10 us"\n'
    )


def test_records_are_those_of_the_switches_on_the_path() -> None:
    Path("flow.csv").write_text("src,dst,bytes,start_s\nh0,h2,3000000,0\n")
    run = ew.run(
        'schema = 1\n[fabric]\nleaves = 2\nhosts_per_leaf = 2\nspines = 1\nhost_delay = "1 us"\n'
        'host_rate = "10 Gbit/s"\nuplink_rate = "40 Gbit/s"\nuplink_delay = "3 us"\n'
        '[tcp]\ncongestion = "reader"\n[[workload]]\nname = "flow"\nkind = "flow-list"\n'
        'file = "flow.csv"\n',
        mechanisms=[Reader],
    )
    assert len(SEEN) > 500 and all(len(hops) == 3 for hops in SEEN)
    links = {name: row for row in run.links.iter_rows(named=True) for name in [row["name"]]}
    for place, name in enumerate(["leaf0->spine0", "spine0->leaf1", "leaf1->h2"]):
        records = [hops[place] for hops in SEEN]
        assert {hop.rate_bps for hop in records} == {links[name]["rate_bps"]}
        sent = [hop.sent_bytes for hop in records]
        assert sent == sorted(sent) and sent[0] > 0
        # the run ends with the last data; ACKs of the last window are still on the way
        assert 0 < links[name]["bytes"] - sent[-1] <= 20 * 1538
        # the flow is alone: only its own window waits, and only where links become slower
        waits = max(hop.queued_bytes for hop in records)
        assert waits == 0 if place < 2 else waits < 20 * 1500
    for leaf, spine, last in SEEN:
        # 1538 B take 307.6 ns at 40 Gbit/s, and the cable 3 us
        assert spine.time_ps - leaf.time_ps == last.time_ps - spine.time_ps == 3_307_600


@pytest.mark.parametrize("senders", [2, 5])
def test_the_longest_queue_is_that_of_the_table(senders: int) -> None:
    run = ew.run(incast(senders, 'congestion = "reader"'), mechanisms=[Reader])
    row = run.links.filter(run.links["name"] == f"switch0->h{senders}")
    most = max(hops[0].queued_bytes for hops in SEEN)
    # the table has bytes on the link, and contains the rest of the packet that is being sent
    assert 0 <= int(row["queue_max_bytes"][0]) - most // 1500 * 1538 <= 1538
    # windows of 20 segments, of which the path holds less than 8
    assert senders * 20 - 8 < most / 1500 < senders * 20


def test_records_change_no_packet() -> None:
    for queue in ('limit = "1000 packets"', 'limit = "12 packets"'):
        plain = ew.run(incast(3, 'congestion = "window"', queue), mechanisms=[Window])
        read = ew.run(incast(3, 'congestion = "reader"', queue), mechanisms=[Reader])
        assert plain.digest == read.digest
        # lost packets leave no records behind
        assert SEEN and all(len(hops) == 1 for hops in SEEN)


@pytest.mark.parametrize("flows", [1, 2, 8])
def test_hpcc_uses_95_percent_of_a_link_without_a_queue(flows: int) -> None:
    def queue_and_use(run: ew.Result) -> tuple[float, float]:
        name = f"switch0->h{flows}"
        row = run.links.filter(run.links["name"] == name)
        samples = run.table("queues").filter(
            pl.col("link") == row["link"][0], pl.col("time_s") > 2e-3
        )
        return float(samples["bytes"].sum()) / 1800, float(row["utilisation"][0])

    own = f'congestion = "hpcc"\nparameters = {{ base_rtt = "8 us", flows = {max(flows, 2)} }}'
    run = ew.run(incast(flows, own), mechanisms=[HPCC])
    step = 'kind = "step-marking", threshold = "65 packets", limit = "1000 packets"'
    dctcp = ew.run(incast(flows, 'congestion = "dctcp"', step))
    (queue, use), (other, _) = queue_and_use(run), queue_and_use(dctcp)
    # the paper sets 95 %; additive increase lifts U above it by at most 1 - 0.95
    assert 0.93 < use < 1
    assert run.summary["packets"]["dropped"] == 0
    assert flows == 1 or queue < other / 20
    sent = run.flows["bytes"].to_list()
    assert min(sent) > 0.85 * max(sent)


def test_what_cannot_record_is_refused() -> None:
    def says(text: str, *mechanisms: type) -> str:
        return "\n".join(p["message"] for p in ew.check(text, mechanisms=mechanisms))

    reader = 'congestion = "reader"'
    assert says(incast(2, reader), Reader) == ""
    assert "write no telemetry" in says(incast(2, reader, more="[fabric.pfc]"), Reader)
    hosts = '[hosts]\nprofile = "linux"'
    assert "return no telemetry" in says(incast(2, reader, more=hosts), Reader)
    with pytest.raises(ew.InputError, match="reads_telemetry has no effect without observe"):
        lone = {"name": "lone", "reads_telemetry": True, "on_ack": lambda self, window, ack: 1}
        says(incast(2, 'congestion = "lone"'), type("Lone", (ew.Congestion,), lone))
