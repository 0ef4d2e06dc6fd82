"""Throughput and pauses over time: pictures and report agree with the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import eastwest as ew
from eastwest import plot
from eastwest.report import pauses, throughput, write_report
from eastwest.views.facts import Facts
from eastwest.views.pauses import places, shares, sound
from eastwest.views.throughput import Throughput, rates_of
from hand_made import TO_H3, folder


def sample(time_s: float, connection: int, size: int, **values: Any) -> dict[str, Any]:
    """Return a row with the bytes of a connection from the host of its number to h3."""
    row = {"time_s": time_s, "connection": connection, "stream": -1, "workload": "w"}
    return {**row, "class": "w", "src": connection, "dst": 3, "bytes": size, **values}


def summary(interval_s: float = 0.001) -> dict[str, Any]:
    return {"simulated_s": 0.01, "flow_samples": {"rows": 1, "interval_s": interval_s}}


def test_rates_and_fairness_are_those_of_their_definitions(tmp_path: Path) -> None:
    # Two hosts send in the first and third millisecond, one alone in the second, the other in the
    # fifth.
    rows = [
        sample(0.001, 0, 3000),
        sample(0.001, 1, 1000),
        sample(0.002, 0, 500),
        sample(0.003, 0, 1000),
        sample(0.003, 1, 1000),
        sample(0.005, 1, 125),
    ]
    found = rates_of(folder(tmp_path / "r", {"flow_samples": rows}, summary()))
    assert found is not None
    assert found.step == 0.001
    assert found.names(lambda host: f"h{host}") == [
        "h0 → h3 (connection 0)",
        "h1 → h3 (connection 1)",
    ]
    np.testing.assert_allclose(found.rates[0], [24e6, 4e6, 8e6, np.nan, np.nan])
    np.testing.assert_allclose(found.rates[1], [8e6, 0, 8e6, 0, 1e6])
    np.testing.assert_allclose(found.total, [32e6, 4e6, 16e6, 0, 1e6])
    # Jain's index: (3 + 1)² / 2 (9 + 1); one of two gets all, twice; from the fourth bin on only
    # one is active.
    np.testing.assert_allclose(found.jain, [0.8, 0.5, 1.0, np.nan, np.nan])
    assert found.sentence() == (
        "2 streams receive 13.2 Mbit/s together on average in the intervals with data; "
        "Jain's index is 0.80 at the median"
    )


def test_long_series_are_folded_and_keep_their_bytes(tmp_path: Path) -> None:
    rows = [sample((i + 1) * 1e-6, i % 9, 100 + i) for i in range(7000)]
    found = rates_of(folder(tmp_path / "r", {"flow_samples": rows}, summary(1e-6)), most=100)
    assert found is not None
    assert found.total.size == 100
    assert found.step == pytest.approx(70e-6)
    assert (found.total * found.step / 8).sum() == pytest.approx(sum(row["bytes"] for row in rows))
    assert found.rates.shape == (6, 100)
    assert found.streams.height == 9


def test_pictures_of_throughput(tmp_path: Path) -> None:
    few = folder(tmp_path / "few", {"flow_samples": [sample(0.001, 0, 9)]}, summary())
    assert len(plot.throughput(few).axes) == 1
    rows = [sample(0.001 * i, c, 100 * c + 1) for i in range(1, 9) for c in range(8)]
    many = folder(tmp_path / "many", {"flow_samples": rows}, summary())
    drawn = plot.throughput(many)
    assert len(drawn.axes) == 3
    title = drawn.axes[0].get_title(loc="left")
    assert title.startswith("8 streams receive")
    assert title.endswith("(2 more are only in the sum)")
    charts = throughput.charts(Facts(many))
    assert [chart.name for chart in charts] == [
        "stream-rates",
        "stream-rates-sum",
        "stream-fairness",
    ]
    # The largest stream comes first: 701 bytes in a millisecond.
    assert charts[0].data["values"][0][0] == pytest.approx(701 * 8000)
    assert throughput.charts(Facts(folder(tmp_path / "none"))) == []
    for number, bad in enumerate((0.0, -1.0, 1e-300, 1e300)):
        none = folder(tmp_path / str(number), {"flow_samples": rows}, summary(bad))
        assert "measure.flow_samples" in plot.throughput(none).axes[0].get_title(loc="left")


def pause(began_s: float, until_s: float, link: int = TO_H3, **values: Any) -> dict[str, Any]:
    row = {"link": link, "priority": 3, "began_s": began_s, "until_s": until_s}
    return {**row, "ended": "released", **values}


def test_ports_stand_in_the_order_of_their_first_pauses(tmp_path: Path) -> None:
    rows = [
        pause(0.004, 0.005),
        pause(0.006, 0.009),
        pause(0.003, 0.004, link=0),
        pause(0.0095, 0.01, link=99, ended="not-yet"),
    ]
    result = folder(tmp_path / "r", {"pauses": rows}, {"simulated_s": 0.01})
    found = places(sound(result))
    assert found["port"].to_list() == ["h0->leaf0", "leaf0->h3", "link 99"]
    assert found["paused_s"].to_list() == pytest.approx([0.001, 0.004, 0.0005])
    drawn = plot.pauses(result)
    assert drawn.axes[0].get_title(loc="left") == (
        "4 pauses at 3 ports, 5.5 ms in total; the first at h0->leaf0 after 3 ms"
    )
    heat = np.asarray(drawn.axes[0].images[0].get_array())
    assert heat.shape == (3, 1500)
    assert heat.mean(axis=1) == pytest.approx([0.1, 0.4, 0.05])
    chart = pauses.heat(Facts(result))
    assert chart is not None
    assert chart.rows == ["h0->leaf0", "leaf0->h3", "link 99"]
    empty = folder(tmp_path / "empty")
    assert pauses.heat(Facts(empty)) is None
    assert "measure.pauses" in plot.pauses(empty).axes[0].get_title(loc="left")


def test_shares_are_those_of_the_spans() -> None:
    spans = [(0, 0.5, 1.25), (0, 1.9, 2.0), (7, 2.0, 2.5), (0, 3.0, 9.0)]
    rows = [{"link": a, "priority": 3, "began_s": b, "until_s": c} for a, b, c in spans]
    table = pl.DataFrame(rows).with_columns(port=pl.lit("port"))
    found = shares(table, places(table), np.arange(6.0))
    np.testing.assert_allclose(found[0], [0.5, 0.35, 0.0, 1.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(found[1], [0.0, 0.0, 0.5, 0.0, 0.0], atol=1e-12)


INCAST = """schema = 1
[fabric]
kind = "star"
hosts = 5
host_rate = "10 Gbit/s"
[fabric.pfc]
[[class]]
name = "frames"
priority = 3
[measure]
pauses = "*"
flow_samples = "*"
flow_samples_interval = "100 us"
[[workload]]
name = "frames"
kind = "ethernet"
pattern = "pairs"
sources = ["h0", "h1", "h2"]
destinations = ["h3", "h3", "h4"]
load = 0.9
frames = 3000
"""


def test_a_run_says_in_its_report_who_got_what_and_who_was_paused(tmp_path: Path) -> None:
    (tmp_path / "incast.toml").write_text(INCAST)
    result = ew.run(tmp_path / "incast.toml", out=tmp_path / "result")
    assert result.pauses.height == result.summary["dcb"]["pauses"]
    found = rates_of(result)
    assert isinstance(found, Throughput)
    received = (found.total * found.step / 8).sum()
    assert received == pytest.approx(result.summary["streams"]["bytes_received"])
    # Two streams share a link of 10 Gbit/s; the third gets what it offers.
    middle = found.rates[:, 3 : found.total.size // 2]
    by_host = dict(zip(found.streams["src"].to_list(), middle.mean(axis=1), strict=True))
    assert by_host[0] + by_host[1] == pytest.approx(10e9 * 1500 / 1538, rel=0.01)
    assert by_host[2] == pytest.approx(9e9, rel=0.05)
    page = write_report([result.path], tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("Paused ports", 'id="pauses"', 'id="stream-rates"', 'id="stream-fairness"'):
        assert words in page, words
