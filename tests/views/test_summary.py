"""Rows of the summary of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eastwest.results import Result
from eastwest.views.summary import by_kind, facts, measured, rows, spread, tally, tcp_counters


def test_statistics_nested_or_flat() -> None:
    nested = {"fct_us": {"mean": 1.0, "p99": 2000.0}}
    flat = {"fct_us_mean": 1.0, "fct_us_p99": 2000.0}
    assert spread(nested, "fct_us", 1e-6) == spread(flat, "fct_us", 1e-6) == "mean 1 µs, p99 2 ms"
    assert spread({}, "fct_us", 1e-6) == "none"
    assert tally(by_kind({"full": {"data": 3, "syn_ack": 0}})) == "3 data (full)"
    assert tally(by_kind({"early": {"data": 3}, "full": {"data": 0}})) == "3 data (early)"
    causes = {"full": {"data": 3, "syn_ack": 7}, "early": {"data": 5}}
    assert tally(by_kind(causes), most=2) == ("7 syn ack (full), 5 data (early), 3 data (full)")
    assert tally(by_kind(causes), most=1) == "7 syn ack (full), 8 in 2 other kinds"
    assert tally({}) == "none"
    tcp = {"retransmits": 9, "timeouts": 4, "lost_windows": 2, "spurious_timeouts": 1, "probes": 0}
    assert tcp_counters(tcp) == "9 retransmits, 4 timeouts"
    told = {"ack": 1, "fin": 1, "full_window": 2, "syn": 0}
    assert tcp_counters(tcp | {"timeout_causes": told}) == (
        "9 retransmits, 4 timeouts (2 full window lost, 1 lost ACK, 1 lost FIN)"
    )
    assert tcp_counters(None) == "none"


def result_of(folder: Path, summary: dict[str, Any]) -> Result:
    (folder / "summary.json").write_text(json.dumps({"format": 8, **summary}))
    return Result(folder)


def spread_of(count: int, value: float) -> dict[str, float]:
    return {"count": count, **dict.fromkeys(("mean", "p50", "p99", "p999", "max"), value)}


WORKLOADS = {
    "workloads": {
        "cg": {"rank_s": spread_of(16, 1.23)},
        "service": {"exchange_us": spread_of(2000, 150.0)},
    },
    "while": {"cg": {"service": {"exchange_us": spread_of(1, 300.0)}}},
    "mpi": {"ranks": 16, "runtime_s": 1.23},
}


def test_each_workload_has_a_line_in_its_own_unit(tmp_path: Path) -> None:
    said = [*rows(result_of(tmp_path, WORKLOADS))]
    assert ("cg", "runtime 1.23 s of 16 ranks") in said
    times = "median 150 µs, p99 150 µs, p99.9 150 µs, max 150 µs"
    at = said.index(("service", f"2,000 exchanges: {times}"))
    assert said[at + 1] == ("", "while cg, 1 exchange: 300 µs")
    assert "MPI" not in dict(said)
    assert "service" not in dict(facts(result_of(tmp_path, WORKLOADS)))


def test_changed_settings_come_first(tmp_path: Path) -> None:
    changed = [f"tcp.a{n} = 1" for n in range(8)]
    first = next(iter(rows(result_of(tmp_path, {"set": changed}))))
    assert first == ("set", "; ".join([*changed[:6], "and 2 more in summary.json"]))


def test_energy_of_switches_is_beside_that_of_links(tmp_path: Path) -> None:
    energy: dict[str, Any] = {"total": 10.0, "of_always_on": 0.109, "of_ideal": 1.2}
    energy |= {"with_switches": {"of_always_on": 0.834}, "switches": {"total": 0.0}}
    said = dict(rows(result_of(tmp_path, {"energy_j": energy})))["energy"]
    assert said == "10 J, 10.9 % of always on, 1.2 × ideal"
    energy["switches"] = {"total": 90.0}
    said = dict(rows(result_of(tmp_path, {"energy_j": energy})))["energy"]
    assert said == "10 J, links 10.9 % of always on, with switches 83.4 %, 1.2 × ideal"


def test_a_run_has_its_simulated_time_its_real_time_and_its_speed(tmp_path: Path) -> None:
    of_run = {"simulated_s": 2.0, "wall_s": 0.5, "cpu_s": 0.25, "packet_hops": 1_000_000}
    said = dict(rows(result_of(tmp_path, {**of_run, "peak_rss_mb": 100.0})))
    assert said["simulated"] == "2 s in 500 ms"
    assert said["speed"] == "4 million packet-hops per CPU-s (1 million in 250 ms), 100 MB"
    assert dict(facts(result_of(tmp_path, of_run)))["simulated"] == "2 s"


def test_an_mpi_run_has_its_runtime_also_without_measures_of_its_ranks(tmp_path: Path) -> None:
    of_window = {"window": {"from_s": 1.0}, "workloads": {"cg": {}}, "mpi": WORKLOADS["mpi"]}
    said = dict(rows(result_of(tmp_path, of_window)))
    assert said["MPI"] == "runtime 1.23 s of 16 ranks"
    assert said["window"] == "from 1 s"
    alone = {"workloads": {"cg": {"rank_s": spread_of(1, 0.5)}}, "mpi": WORKLOADS["mpi"]}
    assert dict(rows(result_of(tmp_path, alone)))["cg"] == "runtime 500 ms of 1 rank"


def test_measures_have_the_other_workload_beside(tmp_path: Path) -> None:
    found = [(each.workload, each.during, each.shown("p99")) for each in measured(WORKLOADS)]
    assert found == [("cg", "", "1.23 s"), ("service", "", "150 µs"), ("service", "cg", "300 µs")]


def test_retransmissions_over_rocev2_are_told_with_trimmed_packets(tmp_path: Path) -> None:
    pairs = {"retransmits": 27_334, "timeouts": 0, "naks": 670, "trimmed": 24_586, "cnps": 0}
    said = dict(rows(result_of(tmp_path, {"rocev2": pairs})))
    assert said["RoCEv2"] == "27,334 retransmits, 24,586 trimmed, 670 naks"


def test_a_run_without_packets_has_no_latency(tmp_path: Path) -> None:
    none = spread_of(0, 0.0)
    said = dict(rows(result_of(tmp_path, {"latency_us": none, "throughput_bps": 0.0})))
    assert said["latency"] == "no packet arrived"
    approximate = {"latency_us": none, "fidelity": "flow"}
    assert dict(rows(result_of(tmp_path, approximate)))["latency"] == "packets are not simulated"
    assert said["throughput"] == "0 bit/s per host (payload of complete flows)"
