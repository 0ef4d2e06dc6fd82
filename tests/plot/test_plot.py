"""Pictures agree with the tables."""

from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import eastwest as ew
from eastwest import plot
from eastwest.plot import picture
from eastwest.plot.style import style
from eastwest.report import parts
from eastwest.views.facts import Facts
from eastwest.views.flows import parts_by_size
from eastwest.views.jobs import at_once, concurrency
from eastwest.views.latency import by_size, quantile
from fake_core import FakeCore
from hand_made import TO_H3, flow, folder


def test_concurrency_is_task_seconds_per_second() -> None:
    tasks = pl.DataFrame({"started_s": [0.0, 1.0, 1.5], "finished_s": [2.0, 2.0, 9.0]})
    running = concurrency(tasks, np.array([0.0, 1.0, 2.0, 3.0, 10.0]))
    assert running == pytest.approx([1.0, 2.5, 1.0, 6 / 7])


def test_tasks_at_once_count_a_handed_over_slot_once() -> None:
    tasks = pl.DataFrame({"started_s": [0.0, 1.0, 2.0], "finished_s": [2.0, 3.0, 4.0]})
    assert at_once(tasks) == 2
    assert at_once(tasks.head(0)) == 0


def test_quantile_of_a_histogram() -> None:
    histogram = pl.DataFrame({"upper_us": [20.0, 10.0, 30.0], "count": [9, 90, 1]})
    assert quantile(histogram, 0.5) == 10
    assert quantile(histogram, 0.9) == 10
    assert quantile(histogram, 0.95) == 20
    assert quantile(histogram, 1.0) == 30
    assert quantile(histogram.head(0), 0.5) is None


def test_size_bins_hold_every_finished_flow(result: ew.Result) -> None:
    table = by_size(result)
    assert table["flows"].sum() == result.flows.height
    assert (table["fct_us_p99"] >= table["fct_us_p50"]).all()


def test_every_picture_can_be_drawn_alone(result: ew.Result) -> None:
    mpl.rcParams["font.size"] = 11.5
    for name, chart in plot.CHARTS.items():
        if chart.applies(result):
            figure = plot.figure(name, result)
            assert figure.axes[0].get_title(loc="left"), name
    assert mpl.rcParams["font.size"] == 11.5
    assert mpl.rcParams["text.parse_math"]
    assert not plot.CHARTS["rounds"].applies(result)


@pytest.mark.parametrize("jobs", [1, 2, 600])
def test_few_and_many_tasks(fake: FakeCore, jobs: int) -> None:
    fake.job_count = jobs
    drawing = plot.draw("task-timeline", [("", ew.run("x.toml"))])
    assert ("Every task" in drawing.title) == (jobs < 60)


def svg(figure: Figure) -> str:
    """Return a figure as SVG text."""
    stream = io.StringIO()
    with style():
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def test_the_same_result_gives_the_same_picture(result: ew.Result) -> None:
    one, two = (svg(plot.figure("throughput", result)) for _ in range(2))
    assert one == two


def inside(tmp_path: Path) -> ew.Result:
    """Return a result with all tables that the pictures of network internals need."""
    trace = [
        {"time_s": 0.1 * i, "connection": c, "dst": 3, "cwnd_bytes": 1000 * (i + c)}
        for i in range(1, 10)
        for c in range(8)
    ]
    return folder(
        tmp_path / "inside",
        {
            "flows": [flow(i, fct_us=1000.0 * 2**i) for i in range(6)],
            "traffic": [{"time_s": 0.1 * i, "tier": "host-down"} for i in range(1, 11)],
            "link_samples": [
                {"time_s": 0.1, "link": TO_H3, "bytes": 12_500_000, "drops": 4, "marks": 30},
                {"time_s": 1.0, "link": TO_H3, "bytes": 6_250_000, "drops": 0, "marks": 7},
                {"time_s": 1.0, "link": 0, "bytes": 1_250_000, "drops": 6},
            ],
            "events": [{"time_s": 0.05, "what": "timeout"}],
            "tcp_trace": trace,
            "jobs": [{"job": 3, "name": "sort$\\alpha$", "runtime_s": 9.0, "finished_s": 9.0}],
            "tasks": [
                {"job": 3, "kind": kind, "started_s": 1.0, "input_done_s": 2.0, "finished_s": 8.0}
                for kind in ("map", "map", "reduce")
            ],
        },
    )


def test_the_pictures_of_the_inside(tmp_path: Path) -> None:
    result = inside(tmp_path)
    titles = {
        "Windows over time; 2 more not shown": plot.windows(result),
        "Windows over time": plot.windows(result, [1]),
        "10 packets lost": plot.losses(result),
        "37 packets marked (CE)": plot.marks(result),
        "Use of 2 links": plot.link_heat(result),
        "Losses of 2 links": plot.link_heat(result, "drops"),
        "sort$\\alpha$: 3 tasks, 9 s": plot.job_tasks(result, 3),
        "fct_us of flows": plot.cdf({"a": result, "b": result}),
        "runtime_s of jobs": plot.cdf([result], "runtime_s", "jobs"),
    }
    for title, drawn in titles.items():
        assert drawn.axes[0].get_title(loc="left") == title
        assert "<svg" in svg(drawn)


def split(number: int, size: int, *parts: float) -> dict[str, float]:
    """Return a flow with its time in injection, queueing, flight and retransmission, in µs."""
    names = ("injection_us", "queueing_us", "flight_us", "retransmission_us")
    whole = {"flow": number, "stream": -1, "bytes": size, "completion_us": sum(parts)}
    return {**whole, **dict(zip(names, parts, strict=True))}


def test_what_flows_spend_their_time_on_is_a_mean_of_shares(tmp_path: Path) -> None:
    rows = [
        split(0, 9_000, 0, 30, 70, 0),
        split(1, 9_000, 0, 0, 1, 9),
        split(2, 50_000, 4, 0, 4, 0),
    ]
    result = folder(tmp_path / "split", {"flow_parts": [*rows, split(3, 50_000, 0, 0, 0, 0)]})
    table = parts_by_size(result)
    assert table["flows"].to_list() == [2, 1]
    assert table["queueing_share"].to_list() == pytest.approx([0.15, 0])
    assert table["flight_share"].to_list() == pytest.approx([0.4, 0.5])
    assert table["retransmission_share"].to_list() == pytest.approx([0.45, 0])
    assert table["retransmission_us_p99"].to_list() == [9, 0]
    drawn = plot.flow_parts(result)
    assert drawn.axes[0].get_title(loc="left") == (
        "Flows of ≤ 10 kB spend 45 % of their time on retransmission, on average"
    )
    bars = [each for each in drawn.axes[0].patches[-2:] if isinstance(each, Rectangle)]
    tops = [bar.get_y() + bar.get_height() for bar in bars]
    assert tops == pytest.approx([1, 1])
    chart = parts.parts(Facts(result))
    assert chart is not None
    assert [cell[1][1] for cell in chart.data["cells"]] == ["15 %, p99 30 µs", "0 %, p99 0 s"]
    assert parts.parts(Facts(folder(tmp_path / "none"))) is None


def test_the_map_of_links_holds_what_the_samples_hold(tmp_path: Path) -> None:
    used = plot.link_heat(inside(tmp_path)).axes[0].images[0].get_array()
    assert used is not None
    heat = np.asarray(used)
    # Links are in the order of tiers: the receiver's link, then the sender's.
    assert heat.shape == (2, 10)
    assert heat[0] == pytest.approx([1, 0, 0, 0, 0, 0, 0, 0, 0, 0.5])
    assert heat[1] == pytest.approx([0, 0, 0, 0, 0, 0, 0, 0, 0, 0.1])


def test_a_curve_goes_through_every_row(tmp_path: Path) -> None:
    result = inside(tmp_path)
    where = pl.col("flow") < 4
    line = plot.cdf(result, where=where).axes[0].lines[0]
    assert np.asarray(line.get_xdata()) == pytest.approx([1e-3, 2e-3, 4e-3, 8e-3])
    assert np.asarray(line.get_ydata()) == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_pictures_of_nothing_say_so_and_wrong_names_are_refused(tmp_path: Path) -> None:
    empty = folder(tmp_path / "empty")
    assert "No row of flows" in plot.cdf(empty).axes[0].get_title(loc="left")
    assert "measure.tcp_trace" in plot.windows(empty).axes[0].get_title(loc="left")
    traced = inside(tmp_path / "traced")
    for name in (999_999, "h99", "x->y"):
        with pytest.raises(ew.InputError, match="no window of"):
            plot.windows(traced, name)
    some = plot.windows(traced, [1, "h0"]).axes[0]
    assert len(some.get_lines()) >= len(plot.windows(traced, 1).axes[0].get_lines())
    assert "measure.flow_parts" in plot.flow_parts(empty).axes[0].get_title(loc="left")
    assert plot.losses(empty).axes[0].get_title(loc="left") == "No packet was lost"
    assert plot.marks(empty).axes[0].get_title(loc="left") == "No packet was marked"
    assert "No utilisation" in plot.link_heat(empty).axes[0].get_title(loc="left")
    with pytest.raises(ew.InputError, match="no finished job 9"):
        plot.job_tasks(empty, 9)
    with pytest.raises(ew.InputError, match="no column 'purpose' with numbers"):
        plot.cdf(empty, "purpose")
    with pytest.raises(ew.InputError, match="utilisation"):
        plot.link_heat(empty, "colour")


def test_svg_is_short_and_has_the_same_lines() -> None:
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot([0, 1, 1, 2], [0, 0, 1, 3], gid="line", solid_joinstyle="miter")
    text = picture.drawn(figure, ".svg").decode()
    line = re.search(r'<g id="line">\s*<path d="([^"]*)"', text)
    assert line is not None
    # The path has a move, a horizontal line, a vertical line, and an oblique line.
    assert re.fullmatch(r"M[\d.]+ [\d.]+H[\d.]+V[\d.]+L[\d.]+ [\d.]+", line[1])
    assert "rotate(-0" not in text
