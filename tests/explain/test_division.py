"""The time of flows, exchanges and programs divided by their critical paths."""

from __future__ import annotations

import json
import math
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import eastwest as ew
import hand_made
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.explain import Story, explain
from eastwest.explain.division import COLUMNS

#: Two hosts send flows of 290 kB to each other over 5 ms of propagation, with a window of 10
#: segments.
NARROW = """
schema = 1
[fabric]
kind = "star"
hosts = 2
host_rate = "1 Gbit/s"
host_delay = "2500 us"
processing_jitter = "0 s"
[tcp]
max_window = "14480 B"
initial_window = 10
[[workload]]
name = "two"
kind = "all-to-all"
bytes = "289600 B"
"""

#: Two hosts send requests to each other.
ASKING = """
schema = 1
[fabric]
kind = "star"
hosts = 2
host_rate = "1 Gbit/s"
[[workload]]
name = "ask"
kind = "all-to-all"
bytes = "100 kB"
request_bytes = "1 kB"
"""


def sums_up(story: Story) -> bool:
    """Return whether the parts of a story add up to its time."""
    assert story.total_us is not None
    return sum(part.us for part in story.parts) == pytest.approx(story.total_us, rel=1e-9)


def part(story: Story, begin: str) -> float:
    """Return the time in µs of the parts whose names begin with ``begin``."""
    return sum(each.us for each in story.parts if each.what.startswith(begin))


def test_a_narrow_window_takes_its_round_trips(tmp_path: Path) -> None:
    result = ew.run(NARROW, out=tmp_path / "r")
    plain = explain(result, "flow", 0)
    assert sums_up(plain)
    assert "path_us" not in plain.facts
    assert any("--rerun" in line for line in plain.unknown)
    story = explain(result, "flow", 0, rerun_s=math.inf)
    assert sums_up(story)
    # 200 segments, 10 per round trip of at least 10 ms; the handshake comes before.
    trips = story.facts["round_trips"]["receiver_window"]
    assert trips >= 19
    window = f"receiver's window full (tcp.max_window): {trips} round trips, without queueing"
    assert part(story, window) >= 190_000
    assert part(story, "handshake") == pytest.approx(10_000, rel=0.01)
    assert part(story, "propagation") == pytest.approx(5000)
    assert not any("--rerun" in line for line in story.unknown)


def test_a_second_run_finds_what_the_first_would_have_recorded(tmp_path: Path) -> None:
    plain = ew.run("s2", {"workload.incast.rounds": 1}, out=tmp_path / "plain")
    again = {"workload.incast.rounds": "1", "measure.flow_parts": "*"}
    recorded = ew.run("s2", again, out=tmp_path / "recorded")
    for flow in range(0, plain.flows.height, 5):
        story = explain(plain, "flow", flow, rerun_s=math.inf)
        assert sums_up(story)
        expected = explain(recorded, "flow", flow)
        assert story.facts["path_us"] == expected.facts["path_us"]
        assert sum(story.facts["path_us"][name] for name in COLUMNS) == pytest.approx(
            story.total_us
        )
        waits = story.facts["queueing_us_by_port"]
        assert sum(waits.values()) == pytest.approx(story.facts["path_us"]["queueing_us"])


def test_another_run_is_not_taken_for_this_one(tmp_path: Path) -> None:
    result = ew.run(NARROW, out=tmp_path / "r")
    summary = result.path / "summary.json"
    changed = json.loads(summary.read_text()) | {"digest": "0" * 32}
    summary.write_text(json.dumps(changed))
    story = explain(result.path, "flow", 0, rerun_s=math.inf)
    assert "path_us" not in story.facts
    assert any("the digest changes" in line for line in story.unknown)


def test_an_exchange_is_its_request_the_server_and_its_response(tmp_path: Path) -> None:
    result = ew.run(ASKING, out=tmp_path / "r")
    rows = result.exchanges
    assert rows.height == 2
    row = rows.row(0, named=True)
    for number in (row["request"], row["response"]):
        story = explain(result, "exchange", number, rerun_s=math.inf)
        assert story.total_us == row["exchange_us"]
        assert sums_up(story)
        assert part(story, "response: ") > part(story, "request: ") > 0
    with pytest.raises(InputError, match="has no exchange with flow 99; it has 2 exchanges of 4"):
        explain(result, "exchange", 99)


def test_an_exchange_tells_what_was_beside_both_of_its_flows(tmp_path: Path) -> None:
    result = ew.run(ASKING, out=tmp_path / "r")
    row = result.exchanges.row(0, named=True)
    story = explain(result, "exchange", row["request"], rerun_s=math.inf)
    told = {section.title: section.lines for section in story.sections}
    for name in ("request", "response"):
        flow = explain(result, "flow", row[name], rerun_s=math.inf)
        assert told[f"At the same time as the {name}"] == next(
            each.lines for each in flow.sections if each.title == "At the same time"
        )
        count = flow.facts["flows_beside_src"]
        assert story.facts[f"beside_{name}"]["flows_beside_src"] == count


#: Two flows share the one uplink of their rack.
UPLINK = """
schema = 1
[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 2
spines = 1
host_rate = "1 Gbit/s"
uplink_rate = "1 Gbit/s"
[measure]
sample_interval = "1 ms"
[[workload]]
name = "two"
kind = "flow-list"
file = "flows.csv"
"""


def test_the_port_where_a_flow_queued_longest_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("src,dst,bytes,start_s\nh0,h2,3000000,0\nh1,h3,3000000,0\n")
    (tmp_path / "uplink.toml").write_text(UPLINK)
    result = ew.run(tmp_path / "uplink.toml", out=tmp_path / "r")
    story = explain(result, "flow", 0, rerun_s=math.inf)
    beside = next(each.lines for each in story.sections if each.title == "At the same time")
    assert beside[-1].startswith("Port leaf0->spine0 meanwhile: queue up to ")
    plain = explain(result, "flow", 0, rerun_s=0)
    assert not any("leaf0->spine0" in line for each in plain.sections for line in each.lines)


#: A small flow is written while a large one leaves the network card of its host.
BEHIND = """
schema = 1
[fabric]
kind = "star"
hosts = 3
host_rate = "1 Gbit/s"
host_queue = { limit = "2000 packets" }
[tcp]
initial_window = 1000
max_window = "4 MB"
[[workload]]
name = "flows"
kind = "flow-list"
file = "flows.csv"
"""


def test_a_flow_behind_others_at_its_network_card_names_the_largest(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text(
        "src,dst,bytes,start_s\nh0,h1,1000000,0\nh0,h2,2000,0.0005\n"
    )
    (tmp_path / "behind.toml").write_text(BEHIND)
    result = ew.run(tmp_path / "behind.toml", out=tmp_path / "r")
    rows = {row["bytes"]: row["flow"] for row in result.flows.to_dicts()}
    small = explain(result, "flow", rows[2000], rerun_s=math.inf)
    assert small.facts["largest_beside_src"] == {
        "flow": rows[1_000_000], "dst": "h1", "bytes": 1_000_000, "purpose": "flow",
    }  # fmt: skip
    beside = next(each.lines for each in small.sections if each.title == "At the same time")
    assert f"The largest of them is flow {rows[1_000_000]} to h1, 1 MB (flow)." in beside
    assert "largest_beside_src" not in explain(result, "flow", rows[2000]).facts


def test_rounding_is_no_time_at_the_server(tmp_path: Path) -> None:
    asked = hand_made.flow(0, purpose="request", tag=1, connection=0, start_s=1.0, fct_us=100.1)
    start_s = asked["finish_s"] + 2e-16
    answer = hand_made.flow(
        1, purpose="response", tag=1, connection=0, src=3, dst=0, start_s=start_s, fct_us=200.3
    )
    result = hand_made.folder(tmp_path / "r", {"flows": [asked, answer]})
    story = explain(result, "exchange", 0)
    assert not [each for each in story.parts if "server" in each.what]
    assert story.total_us is not None and story.total_us > 0


def test_short_runs_are_simulated_again_without_being_asked(tmp_path: Path) -> None:
    result = ew.run(NARROW, out=tmp_path / "r")
    before = sorted(result.path.iterdir())
    command = ["explain", str(result.path), "flow", "0"]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0
    assert "receiver's window full" in told.stdout
    assert "window full" not in CliRunner().invoke(app, [*command, "--no-rerun"]).stdout
    assert sorted(result.path.iterdir()) == before


#: An MPI program of four ranks that computes and sends.
PROGRAM = """
schema = 1
[fabric]
kind = "star"
hosts = 4
host_rate = "10 Gbit/s"
[[workload]]
name = "cg"
kind = "mpi-cg"
problem = "S"
ranks = 4
"""


def test_the_path_of_a_program_fills_its_runtime(tmp_path: Path) -> None:
    result = ew.run(PROGRAM, out=tmp_path / "r")
    story = explain(result, "program", "cg")
    assert sums_up(story)
    finished = result.mpi_ranks["finished_s"].max()
    assert isinstance(finished, float)
    assert story.total_us == pytest.approx(finished * 1e6)
    # All ranks compute equally long, and the path computes at least as long as one of them.
    least = result.mpi_ranks["compute_s"].min()
    assert isinstance(least, float)
    assert part(story, "computing") >= least * 1e6 * (1 - 1e-9)
    assert part(story, "send: messages between hosts") > 0
    (number, *_) = story.facts["slowest_flows"]
    assert sums_up(explain(result, "flow", number, rerun_s=math.inf))
    with pytest.raises(InputError, match=r"has no finished MPI program 'cgg'.*did you mean cg\?"):
        explain(result, "program", "cgg")


def test_a_program_of_slow_messages_waits_for_them(tmp_path: Path) -> None:
    slow = ew.run(PROGRAM, {"fabric.host_delay": "1 ms"}, out=tmp_path / "slow")
    story = explain(slow, "program", "cg")
    assert sums_up(story)
    assert story.parts[0].what == "send: messages between hosts"


def test_a_folder_of_an_older_format_has_no_division(tmp_path: Path) -> None:
    path = ew.run(NARROW, {"measure.flow_parts": "*"}, out=tmp_path / "r").path
    parts = path / "flow_parts.parquet"
    pl.read_parquet(parts).drop("slow_start_us", "receiver_window_us").write_parquet(parts)
    (path / "flow_hops.parquet").unlink()
    summary = path / "summary.json"
    summary.write_text(json.dumps(json.loads(summary.read_text()) | {"format": 8}))
    story = explain(path, "flow", 0)
    assert "path_us" not in story.facts
    assert sums_up(story)


#: Hosts with round times, as in the tests of the simulator: 3 µs for a burst, 5 µs until an
#: interrupt, 3 µs for a received segment.
CORES = """
[hosts]
interrupt_delay = "5 us"
receive_frame = "1 us"
receive_segment = "2 us"
receive_rate = "100 Tbit/s"
send_segment = "3 us"
send_rate = "100 Tbit/s"
ack = "0 s"
"""


def test_the_time_of_hosts_is_told_from_that_of_the_network(tmp_path: Path) -> None:
    result = ew.run(ASKING + CORES, out=tmp_path / "r")
    plain = explain(result, "flow", 0)
    assert sums_up(plain)
    assert any("divides into the cores of hosts" in line for line in plain.unknown)
    small = result.flows.filter(result.flows["purpose"] == "request")["flow"].to_list()
    for flow in small:
        story = explain(result, "flow", flow, rerun_s=math.inf)
        assert sums_up(story)
        # SYN, SYN-ACK and the request: three bursts, three interrupts, three segments.
        cores = {
            "processing by the core of a sending host": 3.0,
            "processing by the core of a receiving host": 3.0,
        }
        for words, least in cores.items():
            assert part(story, words) >= least
        interrupts = part(story, "until the card of a receiving host interrupted its core")
        assert 0 < interrupts <= 15.0 + 1e-6
    free = explain(ew.run(ASKING, out=tmp_path / "free"), "flow", small[0], rerun_s=math.inf)
    assert not any("core" in each.what for each in free.parts)
    assert free.total_us is not None and story.total_us is not None
    assert story.total_us > free.total_us + 10


def test_messages_of_other_transports_are_not_said_to_be_divisible(tmp_path: Path) -> None:
    result = ew.run("rocev2", out=tmp_path / "r")
    for rerun_s in (0, math.inf):
        story = explain(result, "flow", 0, rerun_s=rerun_s)
        assert sums_up(story)
        assert any("only messages over TCP are divided" in line for line in story.unknown)
        assert not any("--rerun" in line or "SYN" in line for line in story.unknown)


def test_a_record_of_other_senders_does_not_prevent_a_second_run(tmp_path: Path) -> None:
    result = ew.run(NARROW, {"measure.flow_parts": "h0->h1"}, out=tmp_path / "r")
    (other, *_) = result.flows.filter(result.flows["src"] == 1)["flow"].to_list()
    assert "path_us" not in explain(result, "flow", other).facts
    assert sums_up(explain(result, "flow", other, rerun_s=math.inf))
    assert "path_us" in explain(result, "flow", other, rerun_s=math.inf).facts
