"""Statements of the labs that are no numbers: the right choices, and the wrong ones, by runs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

import eastwest as ew
from eastwest import shipped
from eastwest.labs import sheet
from eastwest.labs.measure import metrics_of
from eastwest.run import Setting
from eastwest.views.metrics import METRICS


def choice(number: int, id: str) -> sheet.Question:
    return next(each for each in sheet.load(number).questions if each.id == id)


def measured(scenario: str, set: Mapping[str, Setting], seed: int = 1) -> dict[str, float]:
    return metrics_of(scenario, set, seed)


def test_flows_of_incast_wait_for_lost_data_without_duplicate_acks() -> None:
    assert choice(1, "q5").right == "c" and choice(1, "q6").right == "b"
    metrics = measured("lab-1-incast", {})
    causes = {
        name.rpartition(".")[2]: value
        for name, value in metrics.items()
        if name.startswith("tcp.timeout_causes.") and value
    }
    assert {*causes} <= {"few_duplicates", "tail", "full_window"}
    assert metrics["flows.fct_us.max"] > 200_000 and metrics["latency_us.max"] < 300


def test_requests_wait_in_the_queue_of_the_backup() -> None:
    assert choice(2, "q5").right == "d"
    metrics = measured("lab-2-bufferbloat", {})
    assert metrics["workloads.service.request_fct_us.p50"] > 9_000
    assert metrics["workloads.service.response_fct_us.p99"] < 100


def test_a_small_queue_loses_requests() -> None:
    assert choice(2, "q8").right == "a"
    metrics = measured("lab-2-bufferbloat", {"fabric.queue.limit": "50 packets"})
    full_us = 50 * 1538 * 8 / 1000
    assert metrics["workloads.service.exchange_us.p50"] < 700
    assert metrics["workloads.service.exchange_us.p99"] > 2 * full_us
    assert metrics["packets.dropped"] > 500


def test_the_queue_of_dctcp_stays_near_its_threshold(tmp_path: Path) -> None:
    assert choice(3, "q6").right == "c"
    result = ew.run("lab-3-dctcp", set={"measure.sample_interval": "20 us"}, out=tmp_path / "r")
    link = result.links.filter(pl.col("name") == "switch0->h4")["link"].item()
    at = pl.col("time_s")
    queue = result.queues.filter((pl.col("link") == link) & at.is_between(0.03, 0.08))["packets"]
    samples = round((0.08 - 0.03) / 20e-6)
    assert queue.len() > 0.99 * samples, "the queue is never empty"
    packets = queue.to_list()
    assert 60 <= sum(packets) / len(packets) <= 70 and max(packets) < 80


def test_copies_share_two_uplinks_with_seed_1() -> None:
    assert choice(4, "q5").right == "b"
    metrics = measured("lab-4-balancing", {})
    used = [spine for spine in range(4) if metrics[f"links.leaf0->spine{spine}.utilisation"] > 0.5]
    assert used == [1, 3]


def test_spray_sends_again_without_a_loss() -> None:
    assert choice(4, "q9").right == "d"
    for seed in (1, 2, 3):
        metrics = measured("lab-4-balancing", {"fabric.routing": "spray"}, seed)
        assert metrics["packets.dropped"] == 0 and metrics["tcp.retransmits"] > 150


def test_ecmp_avoids_the_degraded_link_with_seed_1() -> None:
    fault = '[{ on = "leaf0->spine0", kind = "degrade", rate = "2.5 Gbit/s" }]'
    assert measured("lab-4-balancing", {"fault": fault})["flows.fct_us.max"] < 35_000


def test_the_victim_of_pfc_waits_at_paused_links() -> None:
    assert choice(5, "q4").right == "a"
    metrics = measured("lab-5-pfc", {})
    assert metrics["links.leaf0->h1.utilisation"] < 0.05
    assert metrics["packets.dropped"] == 0
    assert metrics["workloads.service.request_fct_us.p99"] < 7
    assert metrics["workloads.service.response_fct_us.p50"] > 700


def test_only_a_second_class_removes_the_deadlock() -> None:
    question = choice(5, "q10")
    changes: dict[str, dict[str, Setting]] = {
        "a": {"fabric.pfc.buffer": "300 KB"},
        "b": {"fabric.host_delay": "0.1 us", "fabric.uplink_delay": "0.1 us"},
        "c": {"workload.flow4.class": "second"},
        "d": {"fabric.host_rate": "40 Gbit/s", "fabric.uplink_rate": "40 Gbit/s"},
    }
    for letter, set in changes.items():
        for value in set.values():
            assert str(value) in question.choices[letter]
        completed = measured("lab-5-deadlock", set)["flows.completed"]
        assert completed == (5 if letter == question.right else 0), letter


def test_the_first_pauses_of_the_ring_come_at_their_closed_form(tmp_path: Path) -> None:
    result = ew.run("lab-5-deadlock", set={"measure.pauses": "*"}, out=tmp_path / "r")
    hosts = result.links.filter(pl.col("src").str.starts_with("h"))["link"]
    first = result.pauses.filter(pl.col("link").is_in(hosts.implode()))["began_s"].min()
    assert isinstance(first, float)
    # After 134 µs of IP bytes: framing, jitter of the start, propagation, response.
    assert 0.134 <= (first - 0.005) * 1e3 <= 0.155


def test_a_watchdog_ends_the_deadlock_and_loses_packets() -> None:
    metrics = measured("lab-5-deadlock", {"fabric.pfc.watchdog": "1 ms"})
    assert metrics["flows.completed"] == 5
    assert metrics["dcb.watchdog_drops"] > 1000 and metrics["flows.fct_us.max"] > 50_000


def goals(name: str) -> set[str]:
    """Return the measures in the table ``[goal]`` of a shipped scenario."""
    path = shipped.find(name)
    assert path is not None
    return {*tomllib.loads(path.read_text("utf-8"))["goal"]}


@pytest.mark.parametrize("number", sheet.numbers())
def test_the_studio_shows_the_measures_of_questions(number: int) -> None:
    """Numbers that are no figures of the studio are goals of the scenario, which it shows, too."""
    figures = {".".join(metric.path) for metric in METRICS}
    for question in sheet.load(number).questions:
        for each in question.runs:
            measure = each.metric.removeprefix("workloads.")
            is_time = measure == "simulated_s"
            assert is_time or measure in figures | goals(each.scenario), question.id
