"""Energy in the report: power over time, states of links, energy against time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eastwest as ew
from browser import browser
from eastwest.report import energy, write_page, write_report
from eastwest.report.triangle import triangle
from eastwest.views.facts import Facts
from fake_core import FakeCore, column
from hand_made import folder
from html_pages import HOSTILE, check_self_contained, page_of

pytestmark = pytest.mark.slow

RATES = {"host-up": 10**9, "host-down": 10**9, "leaf-up": 10**10}


def slept(name: Path, energies: dict[str, Any] | None = None, power: bool = True) -> ew.Result:
    """Return a result of 4 s with three links of 1 W; each sends 1/4 and sleeps 1/2 of the time."""
    times = {"awake_s": 1.5, "falling_asleep_s": 0.25, "asleep_s": 2.0, "waking_s": 0.25}
    joules = {"energy_j": 2.2, "energy_always_on_j": 4.0, "energy_ideal_j": 1.3}
    links = [
        {
            "link": number,
            "name": f"l{number}",
            "tier": tier,
            "rate_bps": rate,
            "utilisation": 0.25,
            **times,
            **joules,
        }
        for number, (tier, rate) in enumerate(RATES.items())
    ]
    series = [
        {
            "time_s": float(second),
            "tier": tier,
            "energy_j": 0.1 if tier == "leaf-up" else 1.0,
            "energy_always_on_j": 1.0,
            "energy_ideal_j": 0.1,
            "awake_s": 0.0 if tier == "leaf-up" else 1.0,
            "asleep_s": 1.0 if tier == "leaf-up" else 0.0,
        }
        for second in (1, 2, 3)
        for tier in RATES
    ]
    used = {"total": 6.6, "always_on": 12.0, "ideal": 3.9, "of_always_on": 0.55, "of_ideal": 1.692}
    return folder(
        name,
        {
            "links": links,
            "power": series if power else [],
            "traffic": [{"time_s": float(s), "tier": "host-up"} for s in (1, 2, 3)],
        },
        {"format": 4, "simulated_s": 4.0, "energy_j": {**used, **(energies or {})}},
    )


def test_power_is_that_of_the_series(tmp_path: Path) -> None:
    facts = Facts(slept(tmp_path / "r"))
    chart = energy.charts(facts)[0]
    assert chart.legend == ["cables of hosts", "between switches", "awake", "ideal"]
    hosts, fabric, awake, ideal = np.array(chart.data["values"])
    assert hosts == pytest.approx([2.0] * 3), "the last second has no sample: nothing is drawn"
    assert fabric == pytest.approx([0.1] * 3)
    assert awake == pytest.approx([3.0] * 3)
    assert ideal == pytest.approx([0.3] * 3)
    assert chart.title == (
        "Links draw 1.65 W on average: 55 % of what they would draw always awake, 1.69 × the ideal"
    )


def test_states_are_shares_of_the_time(tmp_path: Path) -> None:
    chart = energy.charts(Facts(slept(tmp_path / "r", power=False)))[0]
    assert chart.name == "link-states"
    shares = [0.25, 0.125, 0.0625, 0.0625, 0.5]
    assert chart.data["values"] == [pytest.approx(shares)] * 4
    assert chart.rows == [
        *("hosts to switches", "switches to hosts", "leaves to spines", "all links")
    ]
    assert "sleep 50 % of the time" in chart.title
    assert "awake without sending 25 % of the time" in chart.title


def test_what_was_saved_is_said_and_listed(tmp_path: Path) -> None:
    switches = {"total": 400.0}
    both = {"total": 406.6, "of_always_on": 0.987, "of_ideal": 1.007}
    hosts = {"total": 4.4, "always_on": 8.0, "ideal": 2.6, "of_always_on": 0.55, "of_ideal": 1.69}
    energies = {"switches": switches, "with_switches": both, "host_links": {**hosts, "wakes": 7}}
    facts = Facts(slept(tmp_path / "r", energies))
    assert energy.sentence(facts) == (
        "good",
        "Sleep saved 45 % of the energy of links: 66.7 % of what ideal sleep would save. "
        "Links and switches together used 1.3 % less energy.",
    )
    assert energy.rows(facts) == [
        ["cables of hosts", "4.4 J", "1.1 W", "55 %", "1.69 ×", "66.7 %", "7"],
        ["all", "6.6 J", "1.65 W", "55 %", "1.69 ×", "66.7 %", "–"],
        ["switches, without links", "400 J", "100 W", "–", "–", "–", "–"],
        ["links and switches", "407 J", "102 W", "98.7 %", "1.01 ×", "–", "–"],
    ]


def test_links_that_stay_awake_have_no_pictures(result: ew.Result) -> None:
    text = page_of(result)
    check_self_contained(text)
    assert 'id="energy"' not in text
    assert "Sleep saved" not in text


def test_the_page_of_a_run_with_sleeping_links(fake: FakeCore) -> None:
    fake.sleeping = True
    text = page_of(ew.run("x.toml"))
    page = check_self_contained(text)
    figures = [a["id"] for tag, a in page.tags if tag == "figure"]
    assert {"power", "link-states"} <= set(figures)
    assert "Sleep saved 60 %" in text
    assert "<h3>Energy by class of links</h3>" in text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e300, 1e300])
@pytest.mark.parametrize("name", ["energy_j", "energy_ideal_j", "asleep_s", "time_s"])
def test_damaged_energies_do_not_break_the_page(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch, name: str, value: float
) -> None:
    fake.sleeping = True
    inner = fake.run

    def damaged(*args: Any) -> Any:
        raw = inner(*args)
        for table in ("power", "links"):
            for place, (title, dtype, data) in enumerate(raw["tables"][table]):
                if title == name and isinstance(data, bytes):
                    values = np.frombuffer(data, "<f8").copy()
                    values[::3] = value
                    raw["tables"][table][place] = column(title, dtype, values)
        return raw

    monkeypatch.setattr(fake, "run", damaged)
    text = page_of(ew.run("x.toml"))
    check_self_contained(text)
    shown = re.sub(r"<(script|style).*?</\1>|<pre.*?</pre>", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf)\b", shown.lower())


def outcome(name: Path, joules: float, runtime: float, p99: float, **energies: Any) -> ew.Result:
    used = {"total": joules, "always_on": 10.0, "of_always_on": joules / 10, "of_ideal": 2.0}
    summary = {
        "scenario": name.name,
        "jobs": {"count": 1, "runtime_s": {"mean": runtime}},
        "latency_us": {"p99": p99},
        "energy_j": {**used, **energies},
    }
    return folder(name, {}, {"format": 4, **summary})


def test_a_result_that_is_worse_in_all_is_named(tmp_path: Path) -> None:
    names = ["awake", "slow", "good", "ideal"]
    results = [
        outcome(tmp_path / "awake", 10, 30, 200),
        outcome(tmp_path / "slow", 6, 50, 500),
        outcome(tmp_path / "good", 5, 31, 400),
        outcome(tmp_path / "ideal", 2, 30, 200, of_ideal=1.0),
    ]
    found = triangle(results, names)
    assert found is not None
    assert [cells for _, cells in found["rows"]] == [
        ["awake", "10 J", "100 %", "30 s", "200 µs", "none"],
        ["slow", "6 J", "60 %", "50 s", "500 µs", "good"],
        ["good", "5 J", "50 %", "31 s", "400 µs", "none"],
        ["ideal", "2 J", "20 %", "30 s", "200 µs", "a bound"],
    ]
    assert found["title"].startswith("2 of 3 results are not beaten")
    assert [corner["rim"] for corner in found["corners"]] == ["10 J", "50 s", "500 µs"]
    # The corner of the first result is at the outer edge for energy, above the triangle's centre.
    assert found["shapes"][0][2].startswith("M260.0 64.0L")
    two = triangle(results[1:3], names[1:3])
    assert two is not None
    assert two["title"] == "good is the best in energy, runtime and latency at once"


def test_results_without_numbers_or_sleep_have_no_triangle(tmp_path: Path) -> None:
    awake = outcome(tmp_path / "awake", 10, 30, 200)
    other = outcome(tmp_path / "other", 10, 31, 200)
    assert triangle([awake, other], ["a", "b"]) is None
    unknown = outcome(tmp_path / "unknown", 5, 31, 200)
    text = json.loads((unknown.path / "summary.json").read_text())
    del text["latency_us"]
    (unknown.path / "summary.json").write_text(json.dumps(text))
    assert triangle([awake, ew.Result(unknown.path)], ["a", "b"]) is None


def test_a_comparison_has_the_triangle(fake: FakeCore) -> None:
    fake.sleeping = True
    fake.name = HOSTILE
    text = page_of(ew.run("x.toml"), ew.run("x.toml", seed=2))
    page = check_self_contained(text)
    assert "trade" in [a["id"] for tag, a in page.tags if tag == "figure"]
    for row in (
        "Energy of links",
        "Energy, share of always on",
        "Energy × delay, J·s",
        "Energy per job",
    ):
        assert f">{row}</th>" in text, row


def test_energy_is_not_told_where_all_links_stay_awake(fake: FakeCore) -> None:
    text = page_of(ew.run("x.toml"), ew.run("x.toml", seed=2))
    assert "Energy" not in re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)


SWEPT = """
schema = 1
name = "swept"
[fabric]
kind = "star"
hosts = 3
host_rate = "1 Gbit/s"
[[workload]]
name = "few"
kind = "poisson"
load = 0.02
sizes = "10 KB"
flows = 50
"""


@pytest.mark.parametrize("sleep", [True, False])
def test_a_sweep_of_policies_has_charts_of_energy(tmp_path: Path, sleep: bool) -> None:
    (tmp_path / "x.toml").write_text(SWEPT)
    axis = {"fabric.energy.kind": ["always-on", "standard", "ideal"]}
    sweep = ew.sweep(
        tmp_path / "x.toml",
        axis if sleep else {"tcp.initial_window": [2, 10]},
        seeds=2,
        jobs=0,
        out=tmp_path / "swept",
        store=tmp_path / "store",
        yes=True,
    )
    text = write_report([sweep.path]).read_text(encoding="utf-8")
    figures = [a["id"] for tag, a in check_self_contained(text).tags if tag == "figure"]
    assert ("metric-energy_j-total" in figures) == sleep
    assert ("Energy, multiple of ideal" in text) == sleep


def test_states_are_read_by_keyboard(
    fake: FakeCore, tool: Callable[..., str], tmp_path: Path
) -> None:
    fake.sleeping = True
    page = write_page([ew.run("x.toml")])
    program = tool("chromium", "chromium-browser", "google-chrome")
    with browser(program, tmp_path / "profile") as chrome:
        chrome.open(page)
        plot = "document.querySelector('#link-states .plot')"
        chrome.script(f"{plot}.focus()")
        chrome.press("Home")
        said = chrome.script(f"{plot}.getAttribute('aria-valuetext')")
        assert said.startswith("hosts to switches: sending ")
        assert said.endswith("asleep 66.7 %")
        chrome.script(f"{plot}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'ArrowDown'}}))")
        said = chrome.script(f"{plot}.getAttribute('aria-valuetext')")
        assert said.startswith("switches to hosts: sending ")
        assert chrome.complaints == []
