"""papers/kernel_tcp: measures on windows made by hand; bands that follow the measurement."""

from __future__ import annotations

import csv
import math
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eastwest.claims.beside import reads
from eastwest.claims.measures import MeasureError, Sample
from eastwest.claims.measures import settings as many
from eastwest.claims.measures.base import Measured, Row
from eastwest.claims.measures.of_study import module_of
from eastwest.claims.spec import Claim, Metric, load
from eastwest.claims.spec import Figure as Wanted
from eastwest.claims.verdict import Part
from eastwest.errors import InputError, ProblemsError
from project_paths import PAPERS

STUDY = PAPERS / "kernel_tcp"
kernel = module_of(STUDY)


def sawtooth() -> Any:
    """Return windows: slow start to 80, then from 50 to 100 segments in each second.

    Each recovery lasts two samples.
    """
    times = [number * 0.005 for number in range(1000)]
    return kernel.Windows(
        times,
        [80 if time < 0.1 else 50 + 50 * (time % 1.0) for time in times],
        [math.inf if time < 0.1 else 40 if time < 1 else 50 for time in times],
        [0.1 <= time < 0.11 or (time >= 1 and time % 1.0 < 0.0099) for time in times],
    )


def test_numbers_of_a_sawtooth() -> None:
    found = sawtooth().numbers()
    assert found["sawtooth-period-s"] == pytest.approx(1.0)
    assert found["sawtooth-peak"] == pytest.approx(50 + 50 * 0.995)
    assert found["sawtooth-threshold"] == 50 and found["slow-start-end"] == 40
    assert found["first-recovery-s"] == pytest.approx(0.1)
    assert found["median-window"] == pytest.approx(75, abs=0.3)
    quiet = kernel.Windows([0.0, 0.005], [10, 20], [math.inf] * 2, [False] * 2)
    assert quiet.numbers() == {"largest-window": 20}


def test_a_picture_has_the_changes_and_the_end() -> None:
    still = kernel.Windows([0.0, 0.005, 0.01, 0.015], [10, 10, 20, 20], [math.inf] * 4, [False] * 4)
    assert still.thinned() == [(0.0, 10), (0.01, 20), (0.015, 20)]


class Points:
    """Stand-in for the points of a sweep with their means."""

    def __init__(self, means: list[float]) -> None:
        self.means = means

    def samples(self, _: str, __: Mapping[str, object]) -> list[Sample]:
        return [Sample({"n": n}, {1: mean}) for n, mean in enumerate(self.means)]


def reversed_in(means: list[float], measured: list[float], spread: list[float]) -> Measured:
    data: Any = Points(means)
    return many.reversed_pairs(data, "v", {}, measured, spread)


def test_reversed_pairs_are_those_that_the_measurement_tells_apart() -> None:
    # The intervals of 1 and 2 overlap, so their order is open; those of 1 and 9 do not.
    found = reversed_in([5, 4, 3], [1, 2, 9], [1, 1, 1])
    assert found.value == 2 and found.text == "2 of 2"
    assert reversed_in([1, 0, 3], [1, 2, 9], [1, 1, 1]).value == 0
    assert {row["second"] for row in found.rows} == {"2"}
    assert (found.low, found.high) == (2, 2)
    with pytest.raises(MeasureError, match="the sweep has 3 points"):
        reversed_in([1, 2, 3], [1, 2], [0, 0])


def test_a_reversed_pair_is_sure_when_the_intervals_of_both_points_lie_apart() -> None:
    class Seeds:
        def samples(self, _: str, __: Mapping[str, object]) -> list[Sample]:
            seeds = [{1: 9.0, 2: 11.0}, {1: 10.9, 2: 11.1}, {1: 99.0, 2: 101.0}]
            return [Sample({"n": n}, values) for n, values in enumerate(seeds)]

    data: Any = Seeds()
    found = many.reversed_pairs(data, "v", {}, [30, 20, 10], [1, 1, 1])
    # The intervals of 10 and 11 overlap, so this pair may be reversed; 100 is above both.
    assert (found.value, found.low, found.high) == (3, 2, 3)


def table(name: str) -> list[dict[str, str]]:
    with (STUDY / "measured" / name).open() as stream:
        return list(csv.DictReader(stream))


def claims() -> list[Claim]:
    return [load(path) for path in sorted((STUDY / "claims").glob("*.toml"))]


NUMBERS: dict[str, str] = runpy.run_path(str(STUDY / "tables.py"))["NUMBERS"]


def allowed(claim: str, metric: str) -> float:
    if metric.startswith("drops"):
        return 0.1
    return 0.05 if claim.startswith("bbr") else 0.03


def test_bands_of_flows_are_shares_of_what_was_measured() -> None:
    flows = {(row["case"], row["number"]): float(row["mean"]) for row in table("flows.csv")}
    seen = 0
    for claim in claims():
        if claim.name.startswith(("incast", "half_gigabit")) or claim.name.endswith("_pair"):
            continue
        for metric in claim.metrics:
            mean = flows[claim.name, NUMBERS[metric.name]]
            share = allowed(claim.name, metric.name)
            band = (metric.low, metric.high)
            assert band == pytest.approx((mean * (1 - share), mean * (1 + share)), rel=1e-3)
            seen += 1
    assert seen == 40


def test_bands_of_pairs_are_shares_of_what_was_measured() -> None:
    rows = {(row["case"], row["number"]): float(row["mean"]) for row in table("pairs.csv")}
    cases = {"reno_pair": "reno_reno_d100", "cubic_reno_pair": "cubic_reno_d100"}
    numbers = {"first flow": ("first", 0.1), "second flow": ("second", 0.1), "sum": ("both", 0.03)}
    pairs = [claim for claim in claims() if claim.name in cases]
    assert len(pairs) == 2
    for claim in pairs:
        assert [metric.name for metric in claim.metrics] == list(numbers)
        for metric in claim.metrics:
            name, share = numbers[metric.name]
            mean = rows[cases[claim.name], f"{name}-goodput"]
            band = (metric.low, metric.high)
            assert band == pytest.approx((mean * (1 - share), mean * (1 + share)), rel=1e-3)


def test_bands_of_reads_are_those_of_what_was_measured() -> None:
    rows = {(row["case"], int(row["senders"])): row for row in table("reads.csv")}
    seen = 0
    for claim in claims():
        for metric in claim.metrics:
            if metric.measure != "reads-goodput" or "gigabit" in claim.name:
                continue
            row = rows[metric.arguments["case"], metric.arguments["senders"]]
            mean = float(row["goodput_mbps"])
            allowed = max(0.15 * mean, float(row["sd"]))
            assert (metric.low, metric.high) == pytest.approx(
                (mean - allowed, mean + allowed), 1e-3
            )
            assert claim.name == f"incast_{metric.arguments['case']}"
            assert metric.arguments["at"] == {"fabric.hosts": metric.arguments["senders"] + 1}
            seen += 1
    assert seen == 24
    order = next(claim for claim in claims() if claim.name == "incast_order").metrics[0].arguments
    cases = ("modern_200ms", "modern_1ms", "classic_200ms", "classic_1ms")
    means = [float(rows[case, n]["goodput_mbps"]) for case in cases for n in (1, 2, 4, 8, 16, 32)]
    assert order["measured"] == means


def test_tables_beside_lie_in_the_study_and_are_tables(tmp_path: Path) -> None:
    study = tmp_path / "study"
    (study / "claims").mkdir(parents=True)
    text = (STUDY / "claims" / "reno_codel.toml").read_text().replace("../open.toml", "../o.toml")
    text = text.replace("../scenarios/flow.toml", str(STUDY / "scenarios" / "flow.toml"))
    path = study / "claims" / "reno_codel.toml"
    (study / "o.toml").write_text("")
    (tmp_path / "out.csv").write_text("x")
    for other in ("../../out.csv", "../none.csv"):
        path.write_text(text.replace("../measured/windows.csv.gz", other))
        with pytest.raises(ProblemsError) as raised:
            load(path)
        assert "folder of the study" in str(raised.value)
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("case,senders\na,1\n")
    row: Row = {"case": "a", "senders": 1, "goodput_bps": 1.0, "low": None, "high": None}
    part = Part(Metric("m", ("r",), "mean", {}, "", 1, 3, 0, 1), Measured(1.0, rows=[row]))
    with pytest.raises(InputError, match=r"wrong\.csv"):
        reads(Wanted("reads", "", "", ("m",), (("a", wrong),)), [part])


#: End of a metric's name → name of the number in gigabit_flows.csv.
GIGABIT = {
    "goodput": "goodput-mbps",
    "median window": "median-window",
    "drops": "retransmissions",
    "marks": "marks",
    "first flow": "goodput-of-first-mbps",
    "second flow": "goodput-of-second-mbps",
    "both": "goodput-of-both-mbps",
}
#: Claim and congestion control → name of the measured case.
GIGABIT_CASES = {
    "half_gigabit_marking": "switch500_{}_marking",
    "half_gigabit_codel": "switch500_{}_codel",
    "half_gigabit_pair": "switch500_reno_pair",
    "half_gigabit_droptail": "kernel500_{}",
}


def test_bands_at_a_gigabit_are_those_of_what_was_measured() -> None:
    flows = {(row["case"], row["number"]): row for row in table("gigabit_flows.csv")}
    rows = {(row["case"], int(row["senders"])): row for row in table("gigabit_reads.csv")}
    seen = 0
    for claim in claims():
        for metric in claim.metrics if "gigabit" in claim.name else ():
            congestion, _, name = metric.name.rpartition(", ")
            if metric.measure == "reads-goodput":
                row = rows[metric.arguments["case"], metric.arguments["senders"]]
                mean, share = float(row["goodput_mbps"]), 0.15
            else:
                case = GIGABIT_CASES[claim.name].format(congestion.lower())
                row = flows[case, GIGABIT[name]]
                mean, share = float(row["mean"]), 0.1 if name in {"drops", "marks"} else 0.03
            spread = 0.0 if name in {"goodput", "both"} else float(row["sd"])
            width = max(share * mean, spread)
            assert (metric.low, metric.high) == pytest.approx((mean - width, mean + width), 1e-3)
            seen += 1
    assert seen == 28


class Sampled:
    """Stand-in for a result with samples each second of the bytes that two receivers got."""

    path = Path("made")
    summary: Mapping[str, Any] = {"flow_samples": {"interval_s": 1.0}}

    def __init__(self, rows: list[tuple[float, int, int]]) -> None:
        self.flow_samples = pl.DataFrame(rows, schema=["time_s", "src", "bytes"], orient="row")


def test_two_flows_have_their_own_time() -> None:
    found: Any = Sampled([(1.0, 7, 100), (2.0, 7, 100), (3.0, 7, 100), (3.0, 2, 50)])
    assert kernel.goodput_of_first_bps(found) == 800
    assert kernel.goodput_of_second_bps(found) == 400
    assert kernel.goodput_of_both_bps(found) == pytest.approx(350 * 8 / 3)
    alone: Any = Sampled([(1.0, 7, 100)])
    with pytest.raises(MeasureError, match="1 senders"):
        kernel.goodput_of_second_bps(alone)


def test_the_lab_names_its_cases_without_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = runpy.run_path(str(STUDY / "lab" / "measure.py"))
    assert lab["main"](["--into", str(tmp_path), "list"]) == 0
    named = capsys.readouterr().out
    assert "switch500_reno_marking 5 missing" in named and "rate_1000 3 missing" in named
    assert lab["main"](["--into", str(tmp_path), "run", "no such case"]) == 2


def test_numbers_of_a_measured_flow_end_where_the_simulated_one_does() -> None:
    derive = runpy.run_path(str(STUDY / "measured" / "derive_gigabit.py"))
    row = {"window": 50, "threshold": 40, "state": 0, "marked": 0, "srtt_us": 1200}
    rows = [
        {**row, "time_s": 0.5 * number, "acked_bytes": 1000 * number, "resent": 2 * number}
        for number in range(11)
    ]
    found = derive["flow"](rows, 8500, 100)
    assert found["goodput-mbps"] == pytest.approx(8500 * 8e-6 / 4.25)
    assert found["retransmissions"] == pytest.approx(17) and found["marks"] == 85
    assert found["median-window"] == 50 and found["slow-start-end"] == 40
    assert found["median-round-trip-ms"] == 1.2
    both = derive["pair"](rows, rows[:6])
    assert both["goodput-of-both-mbps"] == pytest.approx(15000 * 8e-6 / 5)
