"""Options of commands that draw: styles for papers, and numbers beside the picture."""

from __future__ import annotations

import csv
import inspect
import re
from pathlib import Path

import pytest

from command_line import invoke
from eastwest import Result, plot
from eastwest.cli import app
from eastwest.cli.lazy import commands
from eastwest.models import incast
from fake_core import FakeCore


def width_of(path: Path) -> float:
    """Return the width of the page of a PDF file in inches."""
    found = re.search(rb"/MediaBox \[ *0 0 ([\d.]+)", path.read_bytes())
    assert found is not None
    return float(found[1]) / 72


def test_every_command_that_draws_has_the_options_of_pictures() -> None:
    drawing = []
    for path, function in commands(app, "eastwest"):
        options = inspect.signature(function).parameters
        if {"png", "plot", "response"} & set(options):
            drawing.append(path)
            assert {"style", "width", "latex", "numbers"} <= set(options), path
    assert len(drawing) >= 9 and "eastwest report" in drawing


@pytest.mark.slow
def test_a_report_draws_for_a_paper_and_writes_the_numbers(fake: FakeCore) -> None:
    assert invoke("run", "x.toml", "--out", "a")[0] == 0
    options = ["--style", "two-columns", "--width", "usenix", "--numbers"]
    code, out, _ = invoke("report", "a", "--png", "p.pdf", *options)
    assert (code, out.split()) == (0, ["p.pdf", "a/report.html"])
    assert width_of(Path("p.pdf")) == pytest.approx(7.0)
    table = plot.numbers(plot.overview(Result("a")))
    head, *rows = csv.reader(Path("p.csv").read_text(encoding="utf-8").splitlines())
    assert head == table.columns and len(rows) == table.height
    assert {row[0] for row in rows} >= {"running-tasks", "job-runtimes"}
    # The options of one command do not reach the next one.
    invoke("report", "a", "--png", "q.pdf")
    assert width_of(Path("q.pdf")) == 10.0 and not Path("q.csv").exists()


def test_a_model_draws_in_inches_and_writes_its_numbers(tmp_path: Path) -> None:
    picture = tmp_path / "m.pdf"
    draw = ["model", "incast", "--block", "16 KB", "--plot", str(picture), "--numbers"]
    code, _, err = invoke(*draw, "--style", "one-column", "--width", "3.25")
    assert code == 0, err
    assert width_of(picture) == pytest.approx(3.25)
    rows = list(csv.DictReader((tmp_path / "m.csv").read_text(encoding="utf-8").splitlines()))
    assert [float(row["before_bps"]) for row in rows] == [
        incast.goodput_before(int(row["senders"]), 16_000) for row in rows
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--numbers"], "--style, --width, --latex and --numbers are for a picture: add --plot"),
        (["--plot", "m.pdf", "--style", "two-column"], "did you mean two-columns?"),
        (["--plot", "m.pdf", "--style", "one-column", "--width", "amc"], "did you mean acm?"),
        (["--plot", "m.pdf", "--style", "one-column", "--width", "nan"], "from 1.5 to 20 inches"),
        (["--plot", "m.pdf", "--width", "acm"], "--width acm: add --style one-column or"),
        (["--plot", "m.pdf", "--latex"], "the style screen has no LaTeX"),
        (["--plot", "m.pdf", "--numbers", "--csv", "m.csv"], "m.csv would be written twice"),
        (["--plot", "old.pdf", "--numbers"], "old.csv already exists and does not have the numb"),
    ],
)
def test_wrong_options_of_pictures_are_refused(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.csv").write_text("time_s\n1\n")
    code, _, err = invoke("model", "incast", *arguments)
    assert code == 2 and message in err, err
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
    assert Path("old.csv").read_text() == "time_s\n1\n"


def test_two_pictures_need_two_files_for_their_numbers(tmp_path: Path) -> None:
    files = ["--plot", str(tmp_path / "m.pdf"), "--response", str(tmp_path / "m.svg")]
    code, _, err = invoke("model", "control", "red", *files, "--numbers")
    assert code == 2 and "m.csv would be written twice" in err
    assert not list(tmp_path.iterdir())
