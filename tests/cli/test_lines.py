"""Lines that fit a terminal keep numbers beside their units."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from command_line import invoke
from eastwest.cli.lines import wrapped
from eastwest.cli.show import summary_table
from eastwest.results import Result
from fake_core import FakeCore

PERCENTILES = "23,452 exchanges: median 48.2 µs, p99 139 µs, p99.9 205 µs, max 389 µs"


@pytest.mark.parametrize("width", range(30, 80))
def test_a_number_stays_beside_its_unit(width: int) -> None:
    lines = wrapped(PERCENTILES, width).split("\n")
    assert " ".join(lines) == PERCENTILES
    assert max(map(len, lines)) <= width
    # Every line but the last ends with a comma, so no measure is split between lines.
    assert all(line.endswith(",") for line in lines[1:-1])
    assert not any(re.search(r"\d$", line) for line in lines[:-1])


def test_prose_and_long_names_are_broken_anywhere() -> None:
    assert wrapped("the leaf–spine is 2.5:1 over-subscribed: 200 Gbit/s of hosts", 50) == (
        "the leaf–spine is 2.5:1 over-subscribed:\n200 Gbit/s of hosts"
    )
    assert wrapped("x" * 25, 10) == "x" * 10 + "\n" + "x" * 10 + "\n" + "x" * 5
    assert wrapped("", 40) == ""


def test_the_summary_keeps_units_in_80_columns(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = fake.run

    def with_workloads(*args: Any) -> Any:
        raw = inner(*args)
        summary = json.loads(raw["summary_json"])
        values = dict.fromkeys(("mean", "p50", "p99", "p999", "max"), 48.25)
        summary["workloads"] = {
            name: {"exchange_us": {"count": 167_817, **values}} for name in ("a-service", "b")
        }
        raw["summary_json"] = json.dumps(summary)
        return raw

    monkeypatch.setattr(fake, "run", with_workloads)
    monkeypatch.setattr("eastwest.by_workload.measured", lambda *_: {})
    _, out, _ = invoke("run", "x.toml")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    texts = [line.rstrip() for line in lines[1:] if not line.startswith("digest")]
    assert not [line for line in texts if re.search(r"(max|p99|p99.9|median|mean| \d+)$", line)]
    assert sum("48.2 µs" in line for line in texts) >= 2


def test_a_note_is_printed_to_its_end(tmp_path: Path) -> None:
    note = " ".join("ab"[number % 2] * (3 + number % 5) for number in range(60)) + " end"
    (tmp_path / "summary.json").write_text(json.dumps({"format": 8, "notes": [note]}))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(summary_table(Result(tmp_path), 80))
    assert note in " ".join(console.export_text().split())
