"""Stories say what the tables say: checked against folders made by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.explain import Story, explain, slowest
from eastwest.explain.flow import message
from eastwest.timeline import trace
from eastwest.views import fate, timeouts
from eastwest.views.evidence import Event, Evidence, propagation_us, seconds
from hand_made import SCENARIO, TO_H3, drop, event, flow, folder
from trace_events import check


def parts(story: Story) -> dict[str, float]:
    """Return the time of each part of the story, by the mechanism's name."""
    found = story.facts["parts_us"]
    assert isinstance(found, dict)
    return found


def test_a_quiet_flow_has_nothing_to_tell_but_its_sending(tmp_path: Path) -> None:
    story = explain(folder(tmp_path / "r", {"flows": [flow()]}), "flow", 0)
    assert story.title == "Flow 0: h0 → h3, 100 kB, flow"
    assert story.facts["ideal_us"] == pytest.approx(1000)
    nothing = dict.fromkeys(("timer", "behind", "recovery", "unnoticed"), 0)
    assert parts(story) == {**nothing, "sending": 2000}
    assert story.moments == []
    # Two links of 5 µs each, in both directions.
    assert story.facts["handshake_us_least"] == pytest.approx(20)
    assert any("SYN" in line and "20 µs" in line for line in story.unknown)


def test_a_timeout_is_counted_from_the_loss_it_repairs(tmp_path: Path) -> None:
    result = folder(
        tmp_path / "r",
        {
            "flows": [flow(fct_us=250_000.0, slowdown=250.0, timeouts=1, retransmits=1)],
            "events": [drop(1.002, 99_000), event(1.203, "timeout", 99_000)],
        },
    )
    story = explain(result, "flow", 0)
    assert parts(story)["timer"] == pytest.approx(201_000)
    assert parts(story)["sending"] == pytest.approx(49_000)
    assert not story.facts["timer_is_lower_bound"]
    told = [(round(m.at_us), m.text) for m in story.moments]
    assert told == [
        (2000, "1 segment (1 kB) lost at leaf0->h3, its byte 99,000: the queue was full"),
        (203_000, "timeout: byte 99,000 is sent again, 201 ms after its loss"),
    ]


def test_a_timeout_without_a_known_loss_gives_a_lower_bound(tmp_path: Path) -> None:
    events = [event(1.3, "timeout", 5000), event(1.31, "spurious", 5000)]
    tables = {"flows": [flow(fct_us=400_000.0, timeouts=1)], "events": events}
    story = explain(folder(tmp_path / "r", tables), "flow", 0)
    assert parts(story)["timer"] == pytest.approx(200_000)
    assert story.facts["timer_is_lower_bound"]
    assert any("at least" in part.what for part in story.parts)
    assert story.moments[0].text == (
        "timeout: byte 5,000 is sent again, silent for at least 200 ms (tcp.min_rto); "
        "it was spurious"
    )


def test_a_timeout_has_its_cause_and_the_fast_retransmit_before_it(tmp_path: Path) -> None:
    lost = "lost_retransmission"
    events = [
        drop(1.01, 0),
        event(1.02, "recovery"),
        event(1.21, "timeout", cause=lost),
        event(1.25, "timeout", src=3, dst=0, cause="syn_ack"),
    ]
    tables = {"flows": [flow(fct_us=300_000.0, timeouts=1)], "events": events}
    story = explain(folder(tmp_path / "r", tables), "flow", 0)
    assert story.parts[0].what == (
        "waiting for the retransmission timer (1 timeout; fast retransmit 1 time meanwhile)"
    )
    assert [m.text for m in story.moments][-2:] == [
        "timeout: byte 0 is sent again, 200 ms after its loss (its retransmission was lost)",
        "timeout of h3 (the SYN-ACK, or the ACK that answers it, was lost); "
        "the other direction of the connection",
    ]


def test_a_second_timeout_is_counted_from_the_first(tmp_path: Path) -> None:
    events = [
        drop(1.01, 0),
        event(1.21, "timeout"),
        drop(1.2101, 0, kind="retransmission"),
        event(1.61, "timeout"),
    ]
    tables = {"flows": [flow(fct_us=700_000.0, timeouts=2)], "events": events}
    story = explain(folder(tmp_path / "r", tables), "flow", 0)
    assert parts(story)["timer"] == pytest.approx(600_000)
    assert "400 ms after the timeout before" in story.moments[-1].text


def test_a_fast_recovery_is_no_timeout(tmp_path: Path) -> None:
    events = [drop(1.001, 10_000 + 1000 * i) for i in range(5)]
    events += [event(1.0015, "recovery", 10_000), event(1.004, "recovered", 10_000)]
    tables = {"flows": [flow(fct_us=6000.0, slowdown=6.0, retransmits=5)], "events": events}
    story = explain(folder(tmp_path / "r", tables), "flow", 0)
    assert parts(story)["recovery"] == pytest.approx(2500)
    assert parts(story)["timer"] == 0
    assert story.moments[0].text == (
        "5 segments (5 kB) lost at leaf0->h3 within 0 s, from its byte 10,000 on: "
        "the queue was full"
    )
    assert len(story.moments) == 3


def test_the_lost_end_of_a_message_waits_until_its_sender_notices(tmp_path: Path) -> None:
    """The duplicate ACKs come with the next response on the connection, long after the loss."""
    events = [drop(1.0001, 99_000), event(1.158, "recovery", 99_000)]
    tables = {"flows": [flow(fct_us=158_100.0, slowdown=158.0, retransmits=1)], "events": events}
    story = explain(folder(tmp_path / "r", tables), "flow", 0)
    assert parts(story)["unnoticed"] == pytest.approx(157_900)
    assert parts(story)["recovery"] == pytest.approx(100)
    assert parts(story)["sending"] == pytest.approx(100)
    assert story.parts[0].what.startswith("waiting until the sender notices a loss")
    # A probe is not in the events: the byte has arrived when the message ends.
    tables["events"] = events[:1]
    probed = explain(folder(tmp_path / "probed", tables), "flow", 0)
    assert parts(probed)["unnoticed"] == pytest.approx(158_000)


def test_messages_ahead_on_the_connection_are_told_apart(tmp_path: Path) -> None:
    rows = [
        flow(0, fct_us=5000.0),
        flow(1, connection=0, stream_start=100_000, start_s=1.001, fct_us=6000.0),
    ]
    events = [drop(1.002, 40_000), event(1.0045, "timeout", 40_000)]
    story = explain(folder(tmp_path / "r", {"flows": rows, "events": events}), "flow", 1)
    # 2.5 ms of the 4 ms that the message waits behind the first one belong to the timer.
    assert parts(story)["behind"] == pytest.approx(1500)
    assert parts(story)["timer"] == pytest.approx(2500)
    assert sum(parts(story).values()) == pytest.approx(6000)
    assert any("1 earlier message (100 kB)" in p.what for p in story.parts)
    assert any("a byte of an earlier message" in m.text for m in story.moments)


def test_events_of_later_messages_and_other_connections_are_not_its_own(tmp_path: Path) -> None:
    events = [
        drop(1.0001, 500_000),
        drop(1.0006, 0, connection=9),
        event(1.0007, "timeout", 0, connection=9),
        event(1.0008, "timeout", 0, src=3, dst=0),
    ]
    tables = {"flows": [flow(connection=0)], "events": events}
    story = explain(folder(tmp_path / "r", tables), "flow", 0)
    assert parts(story)["timer"] == 0
    assert [m.text for m in story.moments][-1] == (
        "timeout of h3; the other direction of the connection"
    )


def test_a_lost_syn_waits_for_the_timer(tmp_path: Path) -> None:
    syn = drop(1.00001, 0, kind="syn", bytes=0)
    tables = {"flows": [flow(fct_us=1_002_000.0)], "events": [syn, event(2.0, "timeout", bytes=0)]}
    story = explain(folder(tmp_path / "r", tables), "flow", 0)
    assert parts(story)["timer"] == pytest.approx(999_990)
    assert "the opening of the connection is sent again" in story.moments[-1].text


@pytest.mark.parametrize(
    ("summary", "scenario", "words"),
    [
        ({"format": 1}, SCENARIO, "the run recorded no events"),
        ({}, SCENARIO + "[measure]\nevents = 0\n", "the run recorded no events"),
        (
            {"event_log": {"rows": 1, "left_out": 7}},
            SCENARIO,
            "Events after 1.001000 s of simulated time",
        ),
    ],
)
def test_what_is_not_known_is_said(
    tmp_path: Path, summary: dict[str, Any], scenario: str, words: str
) -> None:
    tables = {"flows": [flow(retransmits=3, timeouts=1)], "events": [drop(1.001, 0)]}
    story = explain(folder(tmp_path / "r", tables, summary, scenario), "flow", 0)
    assert any(words in line for line in story.unknown)
    assert "losses without an event" in story.parts[-1].what


def test_a_folder_of_the_first_format_can_be_explained(tmp_path: Path) -> None:
    result = folder(tmp_path / "r", {"flows": [flow(retransmits=2, timeouts=1)]}, {"format": 1})
    for name in ("events", "link_samples", "tcp_trace"):
        (result.path / f"{name}.parquet").unlink()
    old = result.table("flows").drop("connection", "stream_start")
    old.write_parquet(result.path / "flows.parquet")
    story = explain(result.path, "flow", 0)
    assert story.facts["connection"] is None
    assert any("2 segments sent again and 1 timeout" in line for line in story.unknown)
    with pytest.raises(InputError, match="has no connection numbers"):
        explain(result.path, "connection", 0)


def test_a_flow_is_ranked_among_those_of_its_kind(tmp_path: Path) -> None:
    rows = [flow(i, fct_us=1000.0 * (i + 1), start_s=float(i)) for i in range(10)]
    rows.append(flow(10, fct_us=1.0, bytes=10_000_000))
    rows.append(flow(11, fct_us=1.0, purpose="replica"))
    story = explain(folder(tmp_path / "r", {"flows": rows}), "flow", 8)
    alike = story.facts["alike"]
    assert (alike["count"], alike["rank"]) == (10, 2)
    assert alike["share_faster"] == pytest.approx(8 / 9)
    assert alike["fct_us_p50"] == pytest.approx(5500)


def test_what_was_beside_a_flow_is_counted(tmp_path: Path) -> None:
    rows = [
        flow(0, fct_us=10_000.0),
        flow(1, src=1, start_s=1.001, fct_us=2000.0),
        flow(2, src=2, start_s=1.002, fct_us=2000.0),
        flow(3, src=2, start_s=1.004, fct_us=9000.0),
        flow(4, src=1, start_s=1.010, fct_us=9000.0),
        flow(5, dst=2, start_s=0.5, fct_us=900_000.0),
    ]
    tables: dict[str, Any] = {
        "flows": rows,
        "traffic": [{"time_s": 1e-3 * i, "tier": "host-down"} for i in range(1, 1013)],
        "queues": [{"time_s": 1.005, "link": TO_H3, "packets": 80, "bytes": 120_000}],
        "link_samples": [
            {"time_s": 1e-3 * i, "link": TO_H3, "bytes": 62_500, "drops": 1} for i in range(1, 1013)
        ],
    }
    story = explain(folder(tmp_path / "r", tables), "flow", 0)
    assert story.facts["flows_beside_dst"] == 3
    assert story.facts["flows_beside_src"] == 1
    beside = next(s for s in story.sections if s.title == "At the same time").lines
    assert beside[0] == "3 other flows to h3 in progress meanwhile, at most 2 at once."
    # Half of what 1 Gbit/s carries in a millisecond; ten samples lie wholly within the message's
    # time.
    assert beside[1] == (
        "Port leaf0->h3 meanwhile: queue up to 80 packets (120 kB) in samples, "
        "50 % of its rate used, 10 packets of all flows lost in the samples that cover this time."
    )


def test_losses_in_the_first_sample_of_a_flow_are_counted(tmp_path: Path) -> None:
    # The flow begins and ends within a sample: both count, and the samples around them do not.
    tables: dict[str, Any] = {
        "flows": [flow(0, start_s=1.0005, fct_us=3000.0)],
        "traffic": [{"time_s": 1e-3 * i, "tier": "host-down"} for i in range(1, 1013)],
        "link_samples": [
            {"time_s": 1e-3 * i, "link": TO_H3, "bytes": 1, "drops": drops}
            for i, drops in ((1000, 1000), (1001, 100), (1002, 7), (1004, 10), (1005, 1000))
        ],
    }
    story = explain(folder(tmp_path / "r", tables), "flow", 0)
    beside = next(s for s in story.sections if s.title == "At the same time").lines
    assert "117 packets of all flows lost in the samples that cover this time." in " ".join(beside)


def test_the_window_is_told_where_it_was_traced(tmp_path: Path) -> None:
    row = {"connection": 0, "src": 0, "dst": 3, "srtt_us": 120.0, "rto_us": 2e5}
    trace = [
        {**row, "time_s": 1.0001, "cwnd_bytes": 14_480, "phase": "slow-start"},
        {**row, "time_s": 1.0002, "cwnd_bytes": 28_960, "phase": "slow-start", "srtt_us": 900.0},
        {**row, "time_s": 5.0, "cwnd_bytes": 1, "phase": "loss"},
    ]
    story = explain(folder(tmp_path / "r", {"flows": [flow()], "tcp_trace": trace}), "flow", 0)
    assert story.facts["cwnd_bytes_max"] == 28_960
    window = next(s for s in story.sections if "window" in s.title).lines
    assert window[0] == "Window from 14.5 kB to 29 kB in 2 changes; phases: slow-start."
    assert "from 120 µs to 900 µs" in window[1]


def job(**values: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "job": 4,
        "workload": "w",
        "name": "sort",
        "kind": "terasort",
        "submitted_s": 10.0,
        "started_s": 14.0,
        "finished_s": 40.0,
        "maps": 3,
        "reduces": 1,
        "shuffle_bytes": 300_000,
        **values,
    }
    return {"runtime_s": row["finished_s"] - row["submitted_s"], **row}


def task(kind: str, number: int, times: tuple[float, ...], **values: Any) -> dict[str, Any]:
    names = ("assigned_s", "started_s", "input_done_s", "finished_s")
    row = {"job": 4, "workload": "w", "task": number, "kind": kind, "host": number}
    return {**row, "locality": "none", **dict(zip(names, times, strict=True)), **values}


MAPS = [
    task("map", 0, (13.0, 14.0, 14.5, 15.0), locality="node"),
    task("map", 1, (13.0, 14.0, 14.6, 15.2), locality="rack"),
    task("map", 2, (13.0, 14.0, 18.0, 20.0), locality="remote"),
]
JOB_FLOWS = [
    flow(0, job=4, purpose="shuffle", start_s=21.0, fct_us=1e6, src=0),
    flow(1, job=4, purpose="shuffle", start_s=22.0, fct_us=8e6, src=1, slowdown=900.0),
    flow(2, job=5, purpose="shuffle", start_s=22.0, fct_us=1e6, src=1),
    flow(3, job=4, purpose="replica", start_s=35.0, fct_us=1e6, src=3, dst=1),
    flow(4, job=4, purpose="replica", start_s=36.0, fct_us=2e6, src=3, dst=2),
    flow(5, job=4, purpose="replica", start_s=34.0, fct_us=1e6, src=2, dst=1),
]


def test_the_way_through_a_job_adds_up_to_its_runtime(tmp_path: Path) -> None:
    tables = {
        "jobs": [job(), job(job=5, name="other", submitted_s=20.0)],
        "tasks": [*MAPS, task("reduce", 0, (16.0, 17.0, 30.0, 38.0), host=3)],
        "flows": JOB_FLOWS,
    }
    result = folder(tmp_path / "r", tables)
    story = explain(result, "job", 4)
    assert sum(p.us for p in story.parts) == pytest.approx(30e6)
    assert [(p.what, round(p.us / 1e6, 3)) for p in story.parts] == [
        ("set-up, heartbeats, waiting for a slot", 3.0),
        ("map 2: starting", 1.0),
        ("map 2: reading from another rack, computing meanwhile", 4.0),
        ("map 2: computing the rest, spilling", 2.0),
        ("reduce 0: notice of the last map's end, and fetching", 10.0),
        ("reduce 0: merging, reducing", 5.0),
        ("reduce 0: writing its output, from the first chunk sent to a replica on", 3.0),
        ("report of the last task, and clean-up", 2.0),
    ]
    assert story.facts["slowest_fetch"] == story.facts["last_fetch"] == 1
    assert story.facts["stragglers"] == [{"kind": "map", "task": 2, "took_s": 6.0}]
    assert story.facts["locality"] == {"node": 1, "rack": 1, "remote": 1}
    assert story.facts["jobs_beside"] == 1
    assert story.facts["slowest_chunk"] == 4
    text = story.text()
    assert "The last fetch ended the shuffle: flow 1 from h1" in text
    assert "Meanwhile 1 flow outside the job (100 kB) went to h3." in text
    assert explain(result, "job", "sort").to_dict() == story.to_dict()


def test_a_reduce_that_waited_for_a_slot(tmp_path: Path) -> None:
    tables = {
        "jobs": [job()],
        "tasks": [*MAPS, task("reduce", 0, (25.0, 26.0, 30.0, 38.0), host=3)],
        "flows": [],
    }
    story = explain(folder(tmp_path / "r", tables), "job", 4)
    assert sum(p.us for p in story.parts) == pytest.approx(30e6)
    wait = next(p for p in story.parts if "waiting for a slot" in p.what and "map 2" in p.what)
    assert wait.us == pytest.approx(5e6)
    assert "No data crossed the network" in story.text()


def test_a_job_of_maps_only_and_one_without_tasks(tmp_path: Path) -> None:
    maps = explain(folder(tmp_path / "a", {"jobs": [job()], "tasks": MAPS}), "job", 4)
    assert maps.parts[-1].us == pytest.approx(20e6)
    none = explain(folder(tmp_path / "b", {"jobs": [job()]}), "job", 4)
    assert [p.us for p in none.parts] == [pytest.approx(30e6)]


def test_a_task(tmp_path: Path) -> None:
    rows = [flow(0, job=4, purpose="map-input", start_s=14.1, fct_us=3e6, dst=2)]
    tables = {"jobs": [job()], "tasks": MAPS, "flows": rows}
    story = explain(folder(tmp_path / "r", tables), "task", "4/map/2")
    assert [round(p.us / 1e6, 3) for p in story.parts] == [1.0, 4.0, 2.0]
    assert story.facts["alike"] == {"count": 3, "rank": 1}
    assert "flow 0 from h0: 100 kB in 3 s" in story.text()


def test_a_connection(tmp_path: Path) -> None:
    rows = [
        flow(0, fct_us=1000.0),
        flow(1, connection=0, stream_start=100_000, start_s=1.003, fct_us=1000.0),
        flow(2, connection=0, src=3, dst=0, start_s=1.0035, fct_us=1500.0),
    ]
    tables = {"flows": rows, "events": [drop(1.0031, 100_000)]}
    story = explain(folder(tmp_path / "r", tables), "connection", 0)
    assert story.title == "Connection 0 between h0 and h3: 3 messages"
    assert [round(p.us) for p in story.parts] == [3000, 2000]
    assert len(story.moments) == 1


def test_what_is_worth_explaining(tmp_path: Path) -> None:
    rows = [flow(i, fct_us=100.0 * (i + 1), slowdown=20.0 - i, retransmits=i) for i in range(8)]
    result = folder(tmp_path / "r", {"flows": rows, "jobs": [job()]})
    story = slowest(result, top=3)
    assert story.facts["flows_by_fct"] == [7, 6, 5]
    assert story.facts["flows_by_slowdown"] == [0, 1, 2]
    assert story.facts["flows_recovered"] == [7, 6, 5]
    assert story.facts["jobs_by_runtime"] == [4]
    assert [section.title for section in story.sections][:2] == [
        "Flows that took longest",
        "Flows that took longest compared with their ideal time",
    ]
    alike = slowest(folder(tmp_path / "alike", {"flows": [flow()]}))
    assert alike.facts["flows_by_fct"] == alike.facts["flows_by_slowdown"] == [0]
    assert [section.title for section in alike.sections] == [
        "Flows that took longest, also compared with their ideal time"
    ]
    empty = slowest(folder(tmp_path / "empty"))
    assert "0 flows and 0 jobs" in empty.summary


def test_all_causes_of_timeouts_have_words() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "results.md").read_text("utf-8")
    assert set(timeouts.WORDS) == set(re.findall(r"`tcp\.timeout_causes\.(\w+)`", page))


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    name = "evil\x1b[31m\n<script>" + "x" * 5000
    result = folder(tmp_path / "r", {"jobs": [job(name=name)], "tasks": MAPS})
    for story in (explain(result, "job", 4), slowest(result)):
        text = story.text()
        assert "\x1b" not in text
        assert max(len(line) for line in text.splitlines()) < 400
        json.dumps(story.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("kind", "which", "words"),
    [
        ("flow", 5, "has no flow 5; its flows are 0 to 1"),
        ("flow", "x", "named by its number"),
        ("flow", "9" * 40, "named by its number"),
        ("connection", 77, "no message on connection 77"),
        ("job", 99, "has no finished job '99'"),
        ("job", "twin", "several jobs 'twin': 6 of 'w', 7 of 'w'; add --workload"),
        ("task", "4", "JOB/map/3"),
        ("task", "4/map/9", "job 4 has no map 9; it has 3 maps"),
        ("planet", 1, "allowed: flow, exchange, job, task, connection, program"),
    ],
)
def test_what_is_not_there_is_said(tmp_path: Path, kind: str, which: Any, words: str) -> None:
    jobs = [job(), job(job=6, name="twin"), job(job=7, name="twin")]
    result = folder(tmp_path / "r", {"flows": [flow(0), flow(1)], "jobs": jobs, "tasks": MAPS})
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        explain(result, kind, which)


def test_a_flow_of_another_workload_is_refused(tmp_path: Path) -> None:
    rows = [flow(0), flow(1, workload="v")]
    result = folder(tmp_path / "r", {"flows": rows})
    with pytest.raises(InputError, match="flow 0 is of workload 'w', not of 'v'"):
        explain(result, "flow", 0, workload="v")


def test_damaged_rows_are_refused(tmp_path: Path) -> None:
    result = folder(tmp_path / "r", {"flows": [flow(start_s=float("nan"), finish_s=2.0)]})
    with pytest.raises(InputError, match=r"flows\.parquet is damaged: .* column start_s"):
        explain(result, "flow", 0)
    with pytest.raises(InputError, match="damaged"):
        slowest(result)
    gap = folder(tmp_path / "s", {"flows": [flow()], "events": [drop(1.001, 0, kind=None)]})
    with pytest.raises(InputError, match=r"events\.parquet is damaged"):
        explain(gap, "flow", 0)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = folder(tmp_path / "r", {"flows": [flow()]})

    def command(*arguments: str) -> int:
        with pytest.raises(SystemExit) as left:
            app(["explain", str(result.path), *arguments])
        return int(str(left.value.code or 0))

    assert command("flow", "0", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["facts"]["bytes"] == 100_000
    assert told["total_us"] == sum(part["us"] for part in told["parts"])
    assert command("slowest") == 0
    assert "flow 0: h0 → h3" in capsys.readouterr().out
    assert command("flow") == 2
    assert "ID is missing: name a flow; to list" in capsys.readouterr().err
    assert command("flow", "3") == 2
    assert command("exchange") == 2
    assert "ID is missing: name an exchange; to list" in capsys.readouterr().err
    assert command("flow", "0", "--workload", "ww") == 2
    assert "has no workload 'ww'; it has w; did you mean w?" in capsys.readouterr().err
    assert command("flow", "0", "--workload", "w") == 0


def test_lengths_of_time_and_of_paths() -> None:
    assert seconds("200 ms") == pytest.approx(0.2)
    assert seconds("1.5 min") == pytest.approx(90)
    assert seconds("5") is None
    assert seconds("1..2 s") is None
    assert seconds(7) is None
    cables = [
        {"a": "a", "b": "s", "delay_us": 5.0},
        {"a": "s", "b": "b", "delay_us": 7.0},
        {"a": "a", "b": "t", "delay_us": 1.0},
        {"a": "t", "b": "b", "delay_us": 2.0},
    ]
    assert propagation_us({"cables": cables}, "a", "b") == pytest.approx(3)
    assert propagation_us({"cables": cables}, "a", "nowhere") is None


def test_parts_always_add_up() -> None:
    random = Random(1)
    for _ in range(300):
        total_us = random.choice([0.0, 1.0, 1e3, 1e6])
        this = fate.Message(0, 3, 5000, 1.0, 1.0 + total_us / 1e6, total_us, 0, 1000)
        events = [
            Event(
                time_s=1.0 + random.random() * total_us / 1e6,
                what=random.choice(["drop", "timeout", "recovery", "recovered", "spurious"]),
                src=random.choice([0, 3]),
                dst=3,
                kind=random.choice(["data", "retransmission", "ack", "syn", ""]),
                stream_start=random.randrange(8000),
                bytes=random.choice([0, 1000]),
                link=random.choice([-1, 7]),
                cause="queue-full",
            )
            for _ in range(random.randrange(30))
        ]
        events.sort(key=lambda e: e.time_s)
        waits = fate.silences(events, this, 0.2)
        assert all(w.begin_s <= w.timeout_s for w in waits)
        spans = [fate.Interval(fate.TIMER, w.begin_s, w.timeout_s) for w in waits]
        spans += [fate.Interval(fate.RECOVERY, *span) for span in fate.recoveries(events, this)]
        spans.append(fate.Interval(fate.BEHIND, 1.0, 1.0 + random.random()))
        parts = fate.divide(this, spans)
        assert all(us >= 0 for us in parts.values())
        assert sum(parts.values()) == pytest.approx(total_us)
        told = list(fate.bursts(events))
        lost = sum(item.packets for item in told if isinstance(item, fate.Burst))
        assert lost == sum(e.what == "drop" for e in events)


@pytest.fixture(scope="module")
def incast(tmp_path_factory: pytest.TempPathFactory) -> ew.Result:
    """Return a run with many timeouts and recoveries."""
    out = tmp_path_factory.mktemp("explain") / "r"
    return ew.run("s2", set={"workload.incast.rounds": "3"}, out=out)


def test_stories_of_a_real_run_agree_with_its_counters(incast: ew.Result) -> None:
    recovered = 0
    evidence = Evidence(incast)
    for row in incast.flows.iter_rows(named=True):
        told = explain(incast, "flow", row["flow"])
        assert sum(part.us for part in told.parts) == pytest.approx(row["fct_us"])
        this = message(row)
        events = evidence.events_of(this.connection, this.start_s, this.finish_s)
        waits = fate.silences(events, this, 0.2)
        # Each timeout is counted once, and its loss is in the table, one hop after the sending.
        assert len(waits) == row["timeouts"]
        assert all(wait.loss is not None and wait.lasts_s > 0.1999 for wait in waits)
        assert parts(told)["timer"] >= 199_900 * row["timeouts"]
        recovered += len(fate.recoveries(events, this))
    assert recovered == incast.summary["tcp"]["fast_recoveries"]
    losses = incast.events.filter(pl.col("what") == "drop")
    assert losses.height == incast.summary["packets"]["dropped"]


def test_a_timeline_of_a_real_run_keeps_to_the_format(incast: ew.Result) -> None:
    kinds = {e["ph"] for e in check(trace(incast))}
    assert kinds == {"b", "e", "i", "C"}


def test_the_story_of_a_real_job(tmp_path: Path) -> None:
    settings = {"workload.hadoop.trace_to": "20 min"}
    result = ew.run("s4", set=settings, out=tmp_path / "r")
    for row in result.jobs.iter_rows(named=True):
        story = explain(result, "job", row["job"])
        assert sum(part.us for part in story.parts) == pytest.approx(row["runtime_s"] * 1e6)
        last = story.facts.get("last_fetch")
        if last is not None:
            assert result.flows["job"][last] == row["job"]
    check(trace(result))
