"""Cards of results in notebooks: escaped HTML without scripts and without network access."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest.explain import Story
from eastwest.optimize.folder import OptimizeResult
from eastwest.results import Result
from fake_core import FakeCore

HOSTILE = "<script>alert(1)</script><img src='http://x/'>&\x1b[2J"
#: Elements and attributes that a card may have; none of them loads or runs anything.
ELEMENTS = {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "pre"}


class Card(HTMLParser):
    """Parses a card into the text of its cells; fails for unclosed or forbidden elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.said = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS
        assert all(name == "style" and "url" not in (value or "") for name, value in attrs)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"th", "td"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += f"{data}\n"
        if self.open and self.open[-1] in {"th", "td"}:
            self.rows[-1][-1] += data


def measures(count: int) -> dict[str, float]:
    return {"count": count, "mean": 40.0, "p50": 30.0, "p99": 139.0, "p999": 205.0, "max": 389.0}


def result_of(folder: Path, summary: dict[str, Any]) -> Result:
    folder.mkdir(exist_ok=True)
    (folder / "summary.json").write_text(json.dumps({"format": 8, **summary}))
    return Result(folder)


def test_a_result_has_its_name_its_times_workloads_and_notes(tmp_path: Path) -> None:
    summary = {
        "scenario": "shared",
        "seed": 3,
        "simulated_s": 1.5,
        "wall_s": 0.25,
        "workloads": {
            "hadoop": {"runtime_s": {**measures(1), "p50": 21.0}},
            "service": {"exchange_us": measures(1200)},
        },
        "while": {"hadoop": {"service": {"exchange_us": measures(60)}}},
        "notes": [f"note {number}" for number in range(9)],
    }
    card = Card(result_of(tmp_path, summary)._repr_html_())
    assert card.said.startswith("shared, seed 3\n")
    assert ["simulated", "1.5 s"] in card.rows
    assert ["workload", "", "mean", "median", "p99", "p99.9", "max"] in card.rows
    assert "speed" not in dict(row[:2] for row in card.rows if len(row) == 2)
    service = ["service", "1,200 exchanges", "40 µs", "30 µs", "139 µs", "205 µs", "389 µs"]
    at = card.rows.index(service)
    assert card.rows[at - 1][:4] == ["hadoop", "1 job", "40 s", "21 s"]
    assert card.rows[at + 1][:2] == ["while hadoop", "60 exchanges"]
    assert "note: note 4\n" in card.said and "note 5" not in card.said
    assert "and 4 more notes in summary.json" in card.said


def test_a_result_of_the_simulator_is_shown() -> None:
    # A folder of an old format that has no measures of workloads.
    old = Path(__file__).parent / "data" / "results-format-1"
    card = Card(ew.load(old)._repr_html_())
    assert any(row[0] == "simulated" for row in card.rows)


def test_untrusted_names_are_text(fake: FakeCore, tmp_path: Path) -> None:
    fake.name = HOSTILE
    run = ew.run("x.toml", out="r")
    shown = run._repr_html_()
    assert "<script" not in shown and "<img" not in shown and "\x1b" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    Card(shown)
    summary = {
        "workloads": {HOSTILE: {"exchange_us": measures(2)}},
        "while": {f"{HOSTILE}/p": {HOSTILE: {"exchange_us": measures(2)}}},
        "notes": [HOSTILE],
        "latency_us": {"p99": 1.0, "classes": {HOSTILE: {"p99": 1.0}, "b": {"p99": 2.0}}},
    }
    assert "<script" not in result_of(tmp_path / "h", summary)._repr_html_()
    Card(result_of(tmp_path / "h", summary)._repr_html_())
    assert "<script" not in Story("flow", "1", HOSTILE, HOSTILE)._repr_html_()


def test_a_sweep_has_points_with_intervals_and_counts(fake: FakeCore) -> None:
    Path("s.toml").write_text(
        'sweep = 1\nname = "<i>"\nscenario = "x.toml"\nseeds = 2\n'
        'show = ["flows.fct_us.p99", "absent"]\n'
        '[[axis]]\npath = "a.b"\nvalues = ["<b>20</b>", 2]\n[[axis]]\npath = "c"\nvalues = ['
        + ", ".join(map(str, range(10)))
        + "]\n"
    )
    card = Card(ew.sweep("s.toml", jobs=0, out="s", store="store")._repr_html_())
    assert card.said.startswith("<i>\n")
    assert card.rows[0] == ["b", "c", "n", "FCT p99"]
    assert card.rows[1][:3] == ["<b>20</b>", "0", "2"]
    assert card.rows[1][3].startswith("12.3 ms")
    assert len(card.rows) == 1 + 16
    assert "and 4 more points: see the attribute points" in card.said
    assert "40 of 40 runs" in card.said


def test_an_optimisation_has_its_recommendation_and_the_reason(tmp_path: Path) -> None:
    about = {
        "kind": "optimisation",
        "format": 1,
        "name": "sleep",
        "reason": f"keeps the limit {HOSTILE}",
        "recommended": {"name": "point 3", "settings": {"eee.hold": "20 us"}},
        "candidates": [{"name": "ours", "verdict": "is dominated"}],
        "runs": {"done": 12},
    }
    for recommended in (about["recommended"], None):
        (tmp_path / "summary.json").write_text(json.dumps({**about, "recommended": recommended}))
        card = Card(OptimizeResult(tmp_path)._repr_html_())
        assert (["eee.hold", '"20 us"'] in card.rows) == (recommended is not None)
        assert "keeps the limit <script>" in card.said
        assert "ours is dominated" in card.said
        assert "12 runs" in card.said


@pytest.mark.parametrize(
    "shown", [ew.Result, ew.SweepResult, ew.OptimizeResult, ew.Outcome, ew.Story]
)
def test_all_public_results_have_html(shown: type) -> None:
    assert callable(shown._repr_html_)  # type: ignore[attr-defined]
