"""Pictures of sweeps: the drawn curves have the values of the tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eastwest as ew
from eastwest import core
from eastwest.errors import InputError
from eastwest.sweep import SweepResult
from eastwest.views.curves import curves
from eastwest.views.sweep import Points
from fake_core import FakeCore
from swept import swept as swept_by_hand


class Queues(FakeCore):
    """A stand-in whose latency depends on the queue limit and on a timer."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        given, seed = dict(args[3]), args[4] or 1
        raw = super().run(*args, **kwargs)
        summary = json.loads(raw["summary_json"])
        limit = float(given.get("queue.limit", "50 packets").split()[0])
        timer = float(given.get("tcp.timer", "1 ms").split()[0])
        wobble = 1 + 0.01 * math.sin(seed)
        summary["latency_us"]["p99"] = limit * timer * wobble
        return {**raw, "summary_json": json.dumps(summary)}


LIMITS = ["20 packets", "200 packets", "65 packets"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    """Run a grid of three queue limits and two timers."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "x.toml").write_text('name = "x"\n')
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(core, "_core", Queues())
        axes = {"queue.limit": LIMITS, "tcp.timer": ["1 ms", "10 ms"]}
        where = {"out": folder / "s", "store": folder / "store", "jobs": 0}
        return ew.sweep(folder / "x.toml", axes, seeds=3, **where)  # type: ignore[arg-type]


def test_values_with_units_are_at_their_distances(swept: SweepResult) -> None:
    found = curves(swept, "latency_us.p99")
    assert (found.axis.label, found.by) == ("queue.limit (packets)", "timer")
    assert found.axis.numbers == [20.0, 200.0, 65.0]
    assert [curve.name for curve in found.curves] == ["1 ms", "10 ms"]
    mean = sum(1 + 0.01 * math.sin(seed) for seed in (1, 2, 3)) / 3
    assert [e.mean for e in found.curves[1].estimates] == pytest.approx(
        [200e-6 * mean, 2000e-6 * mean, 650e-6 * mean]
    )
    (axes,) = ew.plot.sweep(swept, "latency_us.p99").axes
    line = axes.lines[0]
    assert np.asarray(line.get_xdata()).tolist() == [20.0, 65.0, 200.0]
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert labels == ["20", "65", "200"]
    assert axes.get_title(loc="left") == "Packet latency, p99 by queue.limit (packets)"
    legend = axes.get_legend()
    assert legend is not None and legend.get_title().get_text() == "timer"
    assert [text.get_text() for text in legend.get_texts()] == ["1 ms", "10 ms"]


def test_axes_can_be_named_by_their_last_parts_and_selected(swept: SweepResult) -> None:
    found = curves(swept, "latency_us.p99", x="timer", where={"limit": "65 packets"})
    assert found.axis.numbers == [0.001, 0.01]
    assert [len(curve.places) for curve in found.curves] == [2]
    assert found.axis.write(0.01) == "10 ms"
    both = curves(swept, "latency_us.p99", x="timer", by="queue.limit")
    assert [curve.name for curve in both.curves] == LIMITS
    assert ew.plot.sweep(swept, "latency_us.p99", "timer", "limit").axes[0].get_xscale() == "linear"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measure": "latency_us.p9"}, r"no metric 'latency_us.p9'; did you mean latency_us\."),
        ({"measure": "latency_us.p9"}, "no run has a metric"),
        ({"x": "limmit"}, r"no setting 'limmit'; it varies .*; did you mean limit\?$"),
        ({"by": []}, "differ in tcp.timer: add these settings to by"),
        ({"where": {"limit": "3 packets"}}, "no point of the sweep has"),
    ],
)
def test_wrong_names_are_refused_with_the_nearest(
    swept: SweepResult, arguments: dict[str, Any], message: str
) -> None:
    message = message.replace("no metric 'latency", "a metric 'latency")
    with pytest.raises(InputError, match=message):
        ew.plot.sweep(swept, **arguments)


def test_a_path_of_a_folder_and_the_column_of_numbers_are_accepted(swept: SweepResult) -> None:
    (axes,) = ew.plot.sweep(str(swept.path), "latency_us.p99", x="queue.limit_packets").axes
    assert axes.get_xlabel() == "queue.limit (packets)"
    by_timer = curves(swept, "latency_us.p99", x="limit", by="tcp.timer_s")
    assert [curve.name for curve in by_timer.curves] == ["1 ms", "10 ms"]
    assert ew.plot.comparisons(swept.path, "latency_us.p99").axes
    with pytest.raises(InputError, match=r"it varies .*; did you mean limit\?$"):
        ew.plot.sweep(swept.path, x="limt")


def test_names_are_at_equal_distances_and_are_not_joined(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("s.toml").write_text(
        'sweep = 1\nscenario = "x.toml"\nseeds = 2\n[[axis]]\npath = ["a", "b"]\n'
        'values = [[1, "<i>"], [2, "$x$"]]\nnames = ["<one>", "$two$"]\n'
    )
    swept = ew.sweep("s.toml", jobs=0, out="s", store="store")
    found = curves(swept)
    assert (found.axis.label, found.axis.numbers) == ("case", None)
    assert found.axis.names == ["<one>", "$two$"]
    assert [curve.places for curve in found.curves] == [[0, 1]]
    (axes,) = ew.plot.sweep(swept).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["<one>", "$two$"]
    assert axes.lines[0].get_linestyle() == "None"


def test_paths_that_vary_together_are_one_curve(fake: FakeCore) -> None:
    axis = {"path": ["a", "b"], "values": [[1, 5], [2, 7]]}
    swept = ew.sweep(
        {"sweep": 1, "scenario": "x.toml", "seeds": 2, "axis": [axis]}, jobs=0, out="s"
    )
    assert [curve.places for curve in curves(swept).curves] == [[0, 1]]
    assert curves(swept, x="b").axis.numbers == [5.0, 7.0]


QUEUES = [
    {"kind": "drop-tail", "limit": "200 packets"},
    {"kind": "red", "limit": "200 packets", "min": "20 packets", "max": "60 packets"},
    {"kind": "red", "limit": "200 packets", "min": "50 packets", "max": "150 packets"},
    {"kind": "step-marking", "limit": "200 packets", "threshold": "20 packets"},
    {"kind": "step-marking", "limit": "200 packets", "threshold": "50 packets"},
]


@pytest.fixture
def tables(tmp_path: Path) -> SweepResult:
    """Return a sweep over tables of queues without names: the mean of point n is n + 1."""
    values = {"latency_us.p99": [[n + 0.9, n + 1.1] for n in range(len(QUEUES))]}
    return swept_by_hand(tmp_path / "s", [(["fabric.queue"], [[q] for q in QUEUES])], values)


def test_tables_have_short_labels_that_differ_and_a_place_each(tables: SweepResult) -> None:
    found = curves(tables, "latency_us.p99")
    assert found.axis.names == [
        "drop-tail",
        "red, min 20 packets, max 60 packets",
        "red, min 50 packets, max 150 packets",
        "step-marking, threshold 20 packets",
        "step-marking, threshold 50 packets",
    ]
    assert [curve.places for curve in found.curves] == [[0, 1, 2, 3, 4]]
    (axes,) = ew.plot.sweep(tables, "latency_us.p99").axes
    assert np.asarray(axes.lines[0].get_xdata()).tolist() == [0, 1, 2, 3, 4]
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert len({*labels}) == 5 and labels[0] == "drop-tail"
    points = Points(tables)
    assert points.name(2) == "queue = red, min 50 packets, max 150 packets"
    assert len({*points.layout[0]}) == 5


def test_disciplines_are_curves_along_the_threshold_that_each_has(tables: SweepResult) -> None:
    thresholds = ["fabric.queue.threshold", "fabric.queue.min"]
    found = curves(tables, "latency_us.p99", x=thresholds)
    assert found.axis.label == "fabric.queue.threshold or fabric.queue.min (packets)"
    assert found.axis.numbers == [20.0, 50.0] and found.left_out == 1
    assert (found.by, [curve.name for curve in found.curves]) == ("kind", ["red", "step-marking"])
    assert [[e.mean * 1e6 for e in curve.estimates] for curve in found.curves] == [
        pytest.approx([2, 3]),
        pytest.approx([4, 5]),
    ]
    (axes,) = ew.plot.sweep(tables, "latency_us.p99", thresholds, "fabric.queue.kind").axes
    assert "1 point without" in axes.get_title(loc="left")
    one = curves(tables, "latency_us.p99", x="min", where={"fabric.queue.kind": "red"})
    assert one.axis.numbers == [20.0, 50.0] and one.left_out == 0
    with pytest.raises(InputError, match=r"differ in fabric\.queue: add these settings to by"):
        curves(tables, "latency_us.p99", x="kind", by=[])


def test_changes_are_those_of_the_table_of_comparisons(swept: SweepResult) -> None:
    (axes,) = ew.plot.comparisons(swept, "latency_us.p99").axes
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names[0] == "limit = 20 packets, timer = 10 ms" and len(names) == 5
    means = [np.asarray(line.get_xdata())[0] for line in axes.lines if line.get_marker() == "o"]
    assert means == pytest.approx([9.0, 9.0, 99.0, 2.25, 31.5])
    assert axes.get_xlabel() == "change against limit = 20 packets, timer = 1 ms"


def test_a_wide_range_is_logarithmic(swept: SweepResult) -> None:
    (axes,) = ew.plot.sweep(swept, "latency_us.p99").axes
    assert axes.get_yscale() == "log"  # Values from 20 µs to 2 ms need a logarithmic axis.
    ew.plot.sweep(swept, "latency_us.p99").savefig(Path("/dev/null"), format="png")
