"""Page about a sweep: main metrics first, axes that fit the values, and the Pareto front."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eastwest.report import write_report
from eastwest.report.sweeps import sweep_page
from eastwest.sweep.tables import SweepResult
from eastwest.views.front import trade, unbeaten
from eastwest.views.sweep import Points, axis_of
from html_pages import between, check_self_contained
from swept import Values, swept

LIMIT = "fabric.queue.limit"
TAIL = "workloads.web.exchange_us.p99"


def limits(*packets: int) -> tuple[list[str], list[list[str]]]:
    return [LIMIT], [[f"{number} packets"] for number in packets]


def figures(text: str) -> list[str | None]:
    return [a["id"] for tag, a in check_self_contained(text).tags if tag == "figure"]


def charts(text: str) -> dict[str, Any]:
    data = between(text, '<script type="application/json" id="data">', "</script>")
    found: dict[str, Any] = json.loads(data)["charts"]
    return found


def figure(text: str, name: str) -> str:
    return between(text, f'id="{name}"', "</figure>")


@pytest.fixture
def load(tmp_path: Path) -> SweepResult:
    """Run a sweep of four loads: throughput and latency grow, there are no timeouts."""
    return swept(
        tmp_path / "load",
        [limits(5, 20, 65, 200)],
        {
            TAIL: [[100, 102, 98], [120, 121, 119], [150, 152, 148], [400, 390, 410]],
            "throughput_bps": [[1e8, 1.01e8, 0.99e8], [4e8] * 3, [9e8] * 3, [8e8] * 3],
            "flows.fct_us.p99": [[900, 901, 902], [700] * 3, [600] * 3, [500] * 3],
            "tcp.timeouts": [[0] * 3] * 4,
            "packets.dropped": [[10, 12, 11], [5] * 3, [2] * 3, [1] * 3],
        },
        show=["web.exchange_us.p99", "throughput_bps", "tcp.timeouts"],
    )


def test_the_metrics_of_show_are_drawn_first(load: SweepResult) -> None:
    text = sweep_page(load)
    tail = "metric-workloads-web-exchange_us-p99"
    assert figures(text) == [
        *(tail, "metric-throughput_bps", "trade"),
        *("metric-flows-fct_us-p99", "metric-packets-dropped"),
    ]
    answer = between(text, 'id="answer-title"', "</section>")
    said = re.findall(r"<li>(.*?)</li>", answer)
    assert said[0].startswith("web exchange p99: from 100 µs ± 5.0 % (limit = 5 packets) to 400 µs")
    assert said[1].startswith("Throughput per host, of complete flows: from 100 Mbit/s")
    assert said[2] == "TCP timeouts: 0 at every point."
    assert not any("Packets dropped" in sentence for sentence in said), "not asked for"
    head = between(text, '<table class="sortable stack points">', "</thead>")
    columns = re.findall(r"data-sort>(.*?)</th>", head)
    assert columns[:3] == [
        "web exchange p99",
        "Throughput per host, of complete flows",
        "TCP timeouts",
    ]


def test_two_points_are_compared_in_their_order(tmp_path: Path) -> None:
    values: dict[str, Values] = {
        TAIL: [[200, 202, 198], [100, 102, 98]],
        "packets.dropped": [[10, 12, 11], [11, 10, 13]],
    }
    sweep = swept(tmp_path / "two", [limits(5, 20)], values, show=[TAIL, "packets.dropped"])
    answer = between(sweep_page(sweep), 'id="answer-title"', "</section>")
    said = re.findall(r"<li>(.*?)</li>", answer)
    assert said[0] == (
        "web exchange p99: 200 µs ± 2.5 % (limit = 5 packets), 100 µs ± 5.0 % (limit = 20 packets);"
        " limit = 20 packets against limit = 5 packets: −100 µs (−100 µs to −100 µs), clear."
    )
    assert said[1].endswith("not clear.")


def test_latency_against_throughput_has_its_front(load: SweepResult) -> None:
    found = trade(Points(load))
    assert found is not None and found.more
    assert [found.across.path, found.up.path] == [("throughput_bps",), tuple(TAIL.split("."))]
    # The last point has less throughput and more latency than the third, so it is not in the front.
    assert found.front == [0, 1, 2]
    text = sweep_page(load)
    spots = charts(text)["trade"]["spots"]
    assert [x for x, _ in spots] != sorted(x for x, _ in spots), "the last is not the rightmost"
    rows = re.findall(r'data-head="is">(.*?)</td>', figure(text, "trade"))
    assert rows == ["on the front", "on the front", "on the front", "beaten"]
    line = re.search(r'class="line s1"[^>]* d="([^"]*)"', figure(text, "trade"))
    assert line is not None and line[1].count("L") == 2
    assert "3 of 4 points are on the front of web exchange p99 and Throughput per host" in text
    assert "(no other point is better in both means): limit = 5 packets; " in text


def test_the_front_of_two_times_needs_a_difference(tmp_path: Path) -> None:
    values: dict[str, Values] = {
        "workloads.web.exchange_us.p99": [[100, 101], [50, 51], [70, 71]],
        "workloads.sort.runtime_s.mean": [[10, 10.1], [20, 20.1], [30, 30.1]],
        "throughput_bps": [[1e6, 2e6], [1e6, 2.1e6], [1e6, 2.2e6]],
    }
    sweep = swept(tmp_path / "a", [limits(1, 2, 3)], values)
    found = trade(Points(sweep))
    assert found is not None and not found.more
    assert found.across.path[1] == "sort", "the throughput is the same at each point"
    assert found.front == [0, 1]
    same = {**values, "workloads.sort.runtime_s.mean": [[10, 30]] * 3}
    assert trade(Points(swept(tmp_path / "b", [limits(1, 2, 3)], same))) is None


def test_lines_of_points_follow_the_numeric_axis(tmp_path: Path) -> None:
    tcp = (["tcp.congestion"], [["cubic"], ["dctcp"]])
    values: dict[str, Values] = {TAIL: [[float(n)] * 2 for n in range(6)]}
    sizes = ["512 KB", "64 KB", "1 MB"]
    axis = ([LIMIT], [[size] for size in sizes])
    names = Points(swept(tmp_path / "both", [tcp, axis], values)).names
    assert names.setting == "limit" and [line.common for line in names.lines] == [
        "congestion = cubic",
        "congestion = dctcp",
    ]
    assert names.lines[1].points == (("64 KB", 4), ("512 KB", 3), ("1 MB", 5))
    one = Points(swept(tmp_path / "one", [axis], {TAIL: [[1.0], [2.0], [3.0]]})).names
    assert (one.axis, one.lines) == ("limit", ())


def test_two_percentiles_of_one_measure_are_not_a_trade(tmp_path: Path) -> None:
    largest = "workloads.web.exchange_us.max"
    values: dict[str, Values] = {
        TAIL: [[100, 101], [50, 51], [70, 71]],
        largest: [[100, 101], [80, 81], [200, 201]],
    }
    shown = [TAIL, largest]
    sweep = swept(tmp_path / "two", [limits(1, 2, 3)], values, show=shown)
    assert trade(Points(sweep)) is None
    text = sweep_page(sweep)
    assert "on the front" not in text
    assert "A percentile of a point is the mean of the percentiles of its runs" in text
    one = {name: [seeds[:1] for seeds in points] for name, points in values.items()}
    single = swept(tmp_path / "one", [limits(1, 2, 3)], one, show=shown)
    assert "A percentile of a point" not in sweep_page(single)


def test_points_with_equal_values_do_not_beat_each_other() -> None:
    assert unbeaten({"a": (1, 1), "b": (1, 1), "c": (1, 2), "d": (0, 3)}) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("columns", "label", "texts", "places"),
    [
        # Values with a constant ratio of four have equal distances on a logarithmic axis.
        (
            ["5 packets", "20 packets", "80 packets", "320 packets"],
            "limit (packets, logarithmic)",
            ["5", "20", "80", "320"],
            [0.5, 1.5, 2.5, 3.5],
        ),
        # A range below a factor of 20 remains linear.
        (["1", "2", "4"], "limit", ["1", "2", "4"], [0.5, 0.5 + 2 / 3, 2.5]),
        # Values at equal distances remain linear, however large the range.
        (["1", "51", "101"], "limit", ["1", "51", "101"], [0.5, 1.5, 2.5]),
        # Units differ, so the texts are used as labels.
        (
            ["1 ms", "30 ms", "0.9 s"],
            "limit (logarithmic)",
            ["1 ms", "30 ms", "0.9 s"],
            [0.5, 1.5, 2.5],
        ),
        (["0", "1", "1000"], "limit", ["0", "1", "1000"], [0.5, 0.502, 2.5]),
        # Texts, or values of two kinds, have no common numbers, so the axis has labels.
        (["cubic", "bbr"], "limit", ["cubic", "bbr"], [0.5, 1.5]),
        (["1 ms", "1 packets"], "limit", ["1 ms", "1 packets"], [0.5, 1.5]),
        (["1 ms", "1000 us", "5 ms"], "limit", ["1 ms", "1000 us", "5 ms"], [0.5, 1.5, 2.5]),
    ],
)
def test_the_axis_of_settings(
    columns: list[str], label: str, texts: list[str], places: list[float]
) -> None:
    axis = axis_of("limit", columns)
    assert (axis.label, axis.texts) == (label, texts)
    assert axis.places == pytest.approx(places)


def test_a_chart_has_its_columns_at_the_places_of_their_numbers(tmp_path: Path) -> None:
    values = {"flows.fct_us.p99": [[1, 1.1], [2, 2.1], [3, 3.1]]}
    text = sweep_page(swept(tmp_path / "s", [limits(10, 20, 60)], values))
    assert charts(text)["metric-flows-fct_us-p99"]["places"] == [0.5, 0.9, 2.5]
    labels = re.findall(r'<text[^>]* x="([\d.]+)%" y="15">(.*?)</text>', text)
    assert labels == [("16.667", "10"), ("30.0", "20"), ("83.333", "60")]


def test_settings_that_grow_together_are_one_axis(tmp_path: Path) -> None:
    together = (["hosts", "receiver"], [[5, "h4"], [9, "h8"], [17, "h16"]])
    timeouts = (["tcp.min_rto"], [["1 ms"], ["200 ms"]])
    values = {"flows.fct_us.p99": [[n, n + 1] for n in range(10, 16)]}
    points = Points(swept(tmp_path / "s", [timeouts, together], values))
    columns, series, _ = points.layout
    assert columns == ["5", "9", "17"]
    assert series == ["min_rto = 1 ms", "min_rto = 200 ms"]
    assert points.name(4) == "min_rto = 200 ms, hosts = 9"
    sample = (["a", "b"], [[1, 7], [2, 3], [3, 9], [4, 1]])
    values = {"flows.fct_us.p99": [[n, n + 1] for n in range(4)]}
    drawn = Points(swept(tmp_path / "sample", [sample], values))
    assert drawn.name(1) == "a = 2, b = 3", "settings of a sample are independent"


def test_one_wide_interval_does_not_flatten_the_others(tmp_path: Path) -> None:
    values = {"flows.fct_us.p99": [[1000, 1001, 1002], [1200, 1201, 1202], [10, 20, 3000]]}
    text = sweep_page(swept(tmp_path / "s", [limits(1, 2, 3)], values))
    chart = charts(text)["metric-flows-fct_us-p99"]
    # The interval of the last mean, 1.01 ms, ends at 5.29 ms, beyond the axis.
    assert 1.2e-3 < chart["y"]["high"] < 1.9e-3
    drawn = figure(text, "metric-flows-fct_us-p99")
    assert drawn.count('class="arrow s0"') == 1
    assert "1 interval reaches beyond the axis (up to 5.29 ms): an arrow ends the bar." in drawn
    narrow = {"flows.fct_us.p99": [[1000, 1001], [1200, 1201], [1100, 1101]]}
    text = sweep_page(swept(tmp_path / "n", [limits(1, 2, 3)], narrow))
    assert 'class="arrow' not in text and "beyond the axis" not in text


def test_means_of_several_orders_have_a_logarithmic_axis(tmp_path: Path) -> None:
    values: dict[str, Values] = {
        "packets.dropped": [[0, 0], [3, 5], [500, 520], [70_000, 71_000]],
        "flows.fct_us.p99": [[1, 1.1], [2, 2.1], [3, 3.1], [20, 21]],
    }
    text = sweep_page(swept(tmp_path / "s", [limits(1, 2, 3, 4)], values))
    drops, times = (charts(text)[f"metric-{m}"] for m in ("packets-dropped", "flows-fct_us-p99"))
    assert (drops["y"]["kind"], times["y"]["kind"]) == ("log", "linear")
    assert 0 < drops["y"]["low"] < 4 and drops["y"]["high"] > 71_000
    assert "The axis is logarithmic. Means of 0 are at its lower end." in figure(
        text, "metric-packets-dropped"
    )


def test_an_interval_down_to_zero_is_given_by_its_upper_end(tmp_path: Path) -> None:
    values = {"tcp.timeouts": [[0, 0, 3], [20, 21, 22]]}
    text = sweep_page(swept(tmp_path / "s", [limits(1, 2)], values))
    assert "TCP timeouts: 1 (≤ 5.3) (limit = 1 packets), " in text


def test_the_folder_of_a_sweep_gets_its_page(load: SweepResult) -> None:
    page = write_report([load.path])
    assert page == load.path / "report.html"
    assert "12 of 12 runs done" in page.read_text(encoding="utf-8")


def test_a_point_without_jobs_has_no_runtime(tmp_path: Path) -> None:
    values = {
        "jobs.count": [[0, 0], [1, 1], [1, 1]],
        "jobs.runtime_s.p50": [[0, 0], [10, 11], [20, 21]],
    }
    points = Points(swept(tmp_path / "s", [limits(1, 2, 3)], values))
    metric = next(m for m in points.metrics if m.path == ("jobs", "runtime_s", "p50"))
    assert list(points.of(metric)) == [1, 2]
    text = sweep_page(points.sweep)
    assert "Job runtime, median: from 10.5 s" in text


def test_points_without_a_value_and_failed_runs_are_named(tmp_path: Path) -> None:
    name = "applications.l.answer_us.p99"
    values: dict[str, Values] = {name: [[1510], [1510]], "packets.dropped": [[1], [2]]}
    whole = swept(tmp_path / "whole", [limits(5, 20)], values, show=[name])
    assert "l answer p99: 1.51 ms at every point." in sweep_page(whole)
    values = {name: [[1510], [float("nan")]], "packets.dropped": [[1], [2]]}
    sweep = swept(tmp_path / "part", [limits(5, 20)], values, show=[name])
    failure = {"point": 1, "seed": 1, "settings": {"workload.0.patience": "100 us"}, "message": "m"}
    (sweep.path / "failures.json").write_text(json.dumps([failure]))
    text = sweep_page(SweepResult(sweep.path))
    answer = "l answer p99: 1.51 ms at 1 of 2 points. There is no value at limit = 20 packets."
    assert answer in text
    assert "workload.0.patience = 100 us" in text
    assert "{&#39;workload" not in text


def test_a_sweep_of_one_point_has_the_singular(tmp_path: Path) -> None:
    sweep = swept(tmp_path / "one", [limits(5)], {"packets.dropped": [[1]]})
    assert "1 point × 1 seed: 1 of 1 runs done" in sweep_page(sweep)
