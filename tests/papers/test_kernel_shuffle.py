"""papers/kernel_shuffle: bands that follow the measurement, measures of ports and pairs.

In a short shuffle the modes of protection must keep their order.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from eastwest.claims.measures import MeasureError
from eastwest.claims.measures.of_study import known_in
from eastwest.claims.spec import Claim, load
from eastwest.results import Result
from project_paths import PAPERS

STUDY = PAPERS / "kernel_shuffle"
KNOWN = known_in(STUDY)
SETTINGS = {
    "drop-tail 200": "droptail200",
    "drop-tail 2000": "droptail2000",
    "RED, default": "red_default",
    "RED, ece-bit": "red_ece_bit",
    "RED, ack+syn": "red_ack_syn",
}
KINDS = {
    "data, ECT": "data",
    "data, not ECT": "nonect_data",
    "ACKs": "ack",
    "ACKs with ECE": "ece_ack",
    "SYN and SYN-ACK": "syn",
    "FIN": "fin",
}
NUMBERS = {
    "makespan": ("makespan_s", 0.10),
    "pair_time": ("mean_pair_s", 0.10),
    "latency": ("latency_ms_mean", 0.15),
    "early_drops": ("early_drops_", 0.30),
    "full_drops": ("full_drops_", 0.30),
}


def measured() -> dict[tuple[str, str], tuple[float, float]]:
    with (STUDY / "measured" / "settings.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    return {(r["setting"], r["number"]): (float(r["mean"]), float(r["sd"])) for r in rows}


def claims() -> list[Claim]:
    return [load(path) for path in sorted((STUDY / "claims").glob("*.toml"))]


def test_bands_are_shares_of_what_was_measured_or_its_spread() -> None:
    known = measured()
    seen = 0
    for claim in claims():
        if claim.name not in NUMBERS:
            continue
        number, share = NUMBERS[claim.name]
        for metric in claim.metrics:
            setting, _, kind = metric.name.partition(": ")
            mean, spread = known[SETTINGS[setting], number + (KINDS[kind] if kind else "")]
            allowed = max(share * mean, spread)
            band = (max(0.0, mean - allowed), mean + allowed)
            assert (metric.low, metric.high) == pytest.approx(band, rel=5e-3, abs=0.5)
            assert metric.arguments["at"] == {"name": SETTINGS[setting]}
            seen += 1
    assert seen == 32


def test_the_order_is_that_of_the_measurement() -> None:
    known = measured()
    numbers = {
        "makespan": "makespan_s",
        "time of a pair": "mean_pair_s",
        "latency": "latency_ms_mean",
    }
    (order,) = [claim for claim in claims() if claim.name == "order"]
    for metric in order.metrics:
        number = numbers[metric.name.removesuffix(", all pairs")]
        told = [known[setting, number] for setting in SETTINGS.values()]
        assert metric.arguments["measured"] == [mean for mean, _ in told]
        spread = [0.0] * 5 if metric.name.endswith("all pairs") else [sd for _, sd in told]
        assert metric.arguments["spread"] == spread


class Runs:
    """Stand-in for runs whose tables are made by hand, as a measure gets them."""

    def __init__(self, *results: Any) -> None:
        self.found = results

    def results(self, _: object) -> list[tuple[dict[str, Any], int, Any]]:
        return [({}, seed, result) for seed, result in enumerate(self.found)]


class Folder:
    """Stand-in for a result with a few tables."""

    path = Path("made-by-hand")
    links = pl.DataFrame({"link": [0, 1], "tier": ["host-up", "host-down"]})
    drops = pl.DataFrame(
        {
            "link": [0, 1, 1, 1],
            "kind": ["ack", "ack", "data", "data"],
            "ect": ["not-ect", "not-ect", "not-ect", "ect"],
            "drops_early": [100, 6, 3, 1],
            "marks": [0, 0, 0, 7],
        }
    )
    flows = pl.DataFrame(
        {
            "src": [5, 6, 6, 6, 5],
            "dst": [6, 5, 5, 7, 6],
            "purpose": ["request", "flow", "flow", "flow", "request"],
            "start_s": [1.0, 1.5, 2.5, 0.5, 2.0],
            "fct_us": [0.1e6, 0.2e6, 0.5e6, 0.5e6, 0.4e6],
        }
    )


def test_ports_are_counted_by_kind_ect_and_tier() -> None:
    count, share = KNOWN.measures["port-count"].function, KNOWN.measures["port-share"].function
    data: Any = Runs(Folder(), Folder())
    acks: dict[str, Any] = {"at": {}, "column": "drops_early", "kinds": ["ack"]}
    assert count(data, **acks).value == 106
    assert count(data, **acks, tier="host-down").value == 6
    assert share(data, **acks, tier="host-down").value == pytest.approx(0.6)
    assert count(data, {}, "drops_early", ["data"], ect="ect").value == 1
    assert count(data, {}, "marks", []).value == 7
    with pytest.raises(MeasureError, match="has no count 'colour'"):
        count(data, {}, "colour", [])
    with pytest.raises(MeasureError, match="the sum of marks at these ports is 0"):
        share(data, {}, "marks", ["ack"], tier="host-up")


def test_pairs_last_from_their_first_request_to_their_last_byte() -> None:
    result: Any = Folder()
    # Host 6 sends to 5 from 1.0 s (the request) to 3.0 s, and to 7 from 0.5 s to 1.0 s.
    assert KNOWN.values["mean-pair-s"](result) == pytest.approx((2.0 + 0.5) / 2)
    assert KNOWN.values["pairs-makespan-s"](result) == pytest.approx(2.5)
    assert KNOWN.values["slowest-request-s"](result) == pytest.approx(0.4)


def modes(tmp_path: Path) -> Iterator[list[Result]]:
    """Run three seeds of a shorter shuffle with each mode of protection."""
    (axis,) = load(STUDY / "claims" / "order.toml").runs["shuffle"].axes
    queues = {str(row[0]): row[1] for row in axis.values}
    for name in ("red_default", "red_ece_bit", "red_ack_syn"):
        queue = {f"fabric.queue.{key}": value for key, value in queues[name].items()}
        settings = {**queue, "workload.shuffle.repeat": 3}
        yield [
            ew.run(
                STUDY / "scenarios" / "shuffle.toml",
                set={**settings, "seed": seed},
                out=tmp_path / f"{name}-{seed}",
            )
            for seed in (1, 2, 3)
        ]


def test_the_modes_of_protection_keep_their_order(tmp_path: Path) -> None:
    default, ece_bit, ack_syn = modes(tmp_path)

    def mean(results: list[Result], value: str) -> float:
        return sum(KNOWN.values[value](result) for result in results) / len(results)

    def drops(results: list[Result], kinds: list[str]) -> float:
        data: Any = Runs(*results)
        return KNOWN.measures["port-count"].function(data, {}, "drops_early", kinds).value

    def latency(results: list[Result]) -> float:
        return sum(float(result.summary["latency_us"]["mean"]) for result in results)

    makespans = [mean(results, "pairs-makespan-s") for results in (default, ece_bit, ack_syn)]
    assert makespans[0] > makespans[1] > makespans[2]
    assert latency(default) > latency(ece_bit) > latency(ack_syn)
    assert mean(default, "slowest-request-s") > 1
    assert mean(ece_bit, "slowest-request-s") < 0.2
    assert drops(default, ["syn", "syn_ack"]) > 0 and drops(default, ["ece_ack"]) > 100
    assert drops(ece_bit, ["syn", "syn_ack", "ece_ack"]) == 0 and drops(ece_bit, ["ack"]) > 100
    assert drops(ack_syn, ["syn", "syn_ack", "ece_ack", "ack", "fin"]) == 0
