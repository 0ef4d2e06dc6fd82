"""Pictures say what the tables say."""

from __future__ import annotations

import re

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest

import eastwest as ew
from eastwest import plot
from eastwest.plot.jobs import at_once, concurrency
from eastwest.plot.latency import by_size, quantile
from eastwest.plot.style import VARIABLES, svg
from fake_core import FakeCore


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


def test_colours_of_a_page_come_from_its_style_sheet(result: ew.Result) -> None:
    drawn = svg(plot.draw("job-runtimes", [("", result)]).figure, "a")
    assert "var(--muted)" in drawn
    assert "var(--blue)" in drawn
    assert not set(VARIABLES) & set(re.findall(r"#[0-9a-f]{6}", drawn))
    ids = re.findall(r'\bid="([^"]*)"', drawn)
    assert all(name.startswith("a-") for name in ids)
    for target in re.findall(r"url\(#([^)]*)\)", drawn):
        assert target in ids


def test_the_same_result_gives_the_same_picture(result: ew.Result) -> None:
    one, two = (svg(plot.draw("throughput", [("", result)]).figure, "a") for _ in range(2))
    assert one == two
