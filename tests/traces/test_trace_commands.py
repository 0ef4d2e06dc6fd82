"""The commands for traces, and the pages that they write."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from eastwest.cli import app
from eastwest.report.trace import comparison_page, description_page
from eastwest.traces.load import open_trace
from eastwest.traces.write import Writer
from eastwest.workload.describe import describe, jobs_of
from eastwest.workload.quality import compare
from html_pages import HOSTILE, check_self_contained

SHORT = "fb-2009-first-50"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["trace", *map(str, arguments)])


def whole_trace(out: Path, jobs: int = 60) -> Path:
    """Write a trace with every property that pages describe, and names that look like markup."""
    rows = range(jobs)
    with Writer(out) as writer:
        writer.next_job(jobs)
        table = {
            "job": list(rows),
            "name": [HOSTILE] * jobs,
            "submit_s": [60.0 * n for n in rows],
            "finish_s": [60.0 * n + 5 + n for n in rows],
            "input_bytes": [10**6 * (n + 1) for n in rows],
            "shuffle_bytes": [0 if n % 2 else 10**5 * n for n in rows],
            "output_bytes": [10**4] * jobs,
        }
        numbers = {"job": pl.UInt32} | {c: pl.UInt64 for c in table if c.endswith("bytes")}
        writer.add_frame("jobs", pl.DataFrame(table, schema_overrides=numbers))
        attempts = {
            "job": list(rows),
            "task": [HOSTILE] * jobs,
            "kind": ["map"] * jobs,
            "start_s": [60.0 * n for n in rows],
            "finish_s": [60.0 * n + 4 for n in rows],
            "outcome": ["succeeded"] * jobs,
        }
        writer.add_frame("attempts", pl.DataFrame(attempts, schema_overrides={"job": pl.UInt32}))
        files = {
            "job": list(rows),
            "path": [f"/{HOSTILE}/{n % 20 * (n % 3)}" for n in rows],
            "access": ["read"] * jobs,
            "bytes": [1] * jobs,
        }
        kinds = {"job": pl.UInt32, "bytes": pl.UInt64}
        writer.add_frame("files", pl.DataFrame(files, schema_overrides=kinds))
        writer.finish({"source": HOSTILE})
    return out


def test_pages_are_self_contained_whatever_the_trace_holds(tmp_path: Path) -> None:
    folder = whole_trace(tmp_path / "<b onload=x>")
    with open_trace(folder) as trace:
        described = describe(trace)
        quality = compare(jobs_of(trace), jobs_of(trace))
    text = description_page(described, quality, {"method": HOSTILE, "source": HOSTILE, "seed": 1})
    page = check_self_contained(text)
    figures = {a["id"] for tag, a in page.tags if tag == "figure"}
    assert {"bytes", "popularity", "again", "task-times", "over-time-jobs"} <= figures
    assert "All 11 distances" in text
    check_self_contained(comparison_page(described, described, quality))


def test_describe_fits_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    page, png = tmp_path / "page.html", tmp_path / "sheet.png"
    done = run("describe", SHORT, "-o", page, "--png", png)
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) <= 28
    assert "50 jobs in" in done.stdout
    assert "too short for an estimate" in done.stdout
    assert png.read_bytes().startswith(b"\x89PNG")
    check_self_contained(page.read_text("utf-8"))


def test_describe_gives_every_number_as_json() -> None:
    done = run("describe", SHORT, "--json")
    found = json.loads(done.stdout)
    assert found["arrival"]["jobs"] == 50
    assert found["access"]["sizes"].keys() == {"input_bytes", "shuffle_bytes", "output_bytes"}
    assert found["quality"] is None


def test_compare_with_itself_is_nothing(tmp_path: Path) -> None:
    page, png = tmp_path / "pair.html", tmp_path / "pair.svg"
    done = run("compare", SHORT, SHORT, "-o", page, "--png", png)
    assert done.exit_code == 0, done.output
    assert "All 9 distances" in done.stdout.replace("\n", " ")
    check_self_contained(page.read_text("utf-8"))
    assert "<svg" in png.read_text("utf-8")
    rows = json.loads(run("compare", SHORT, SHORT, "--json").stdout)["rows"]
    assert [row["value"] for row in rows] == pytest.approx([0.0] * 9, abs=1e-9)


def test_synthesize_keeps_its_distances_for_describe(tmp_path: Path) -> None:
    out = tmp_path / "made"
    asked = ("synthesize", SHORT, "--length", "1h", "--nodes", "600:20", "--seed", "3", "-o", out)
    done = run(*asked, "--json")
    answer = json.loads(done.stdout)
    assert done.exit_code == (0 if answer["quality"]["inside"] else 1)
    assert (answer["length_s"], answer["nodes"]) == (3600.0, "600:20")
    again = run(*asked)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    described = json.loads(run("describe", out, "--json").stdout)
    assert len(described["quality"]["rows"]) == 9
    assert described["arrival"]["jobs"] == answer["jobs"]


def test_distances_outside_are_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an interval that holds a hundredth of the source's own days, none lies inside."""
    monkeypatch.setattr("eastwest.workload.quality.CONFIDENCE", 0.01)
    out = tmp_path / "made"
    done = run("synthesize", SHORT, "--length", "1 h", "--draws", "2", "-o", out)
    assert done.exit_code == 1, done.output
    assert "outside" in done.stdout
    assert "draw" in done.stdout
    assert (out / "jobs.parquet").is_file()


def test_scale_says_what_it_preserves(tmp_path: Path) -> None:
    done = run("scale", SHORT, "--nodes", "600:20", "--as", "swim", "-o", tmp_path / "small.tsv")
    assert done.exit_code == 0, done.output
    assert "bytes per node" in done.stdout.replace("\n", " ")
    first = (tmp_path / "small.tsv").read_text("utf-8").splitlines()[0]
    assert first == "job0\t49\t49\t24692\t77985\t20916"
    faster = run("scale", SHORT, "--load", "2", "-o", tmp_path / "fast", "--json")
    assert "peak to median" in json.loads(faster.stdout)["preserves"]
    files = run("scale", whole_trace(tmp_path / "whole"), "--data", "1/2", "-o", tmp_path / "half")
    assert files.exit_code == 0, files.output
    with open_trace(tmp_path / "half") as trace:
        assert trace.tables == ("jobs", "files")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("describe", "fb-2008"), "shipped: fb-2009"),
        (("describe", "no/such.tsv"), "does not exist"),
        (("describe", SHORT, "--png", "x.gif"), ".svg"),
        (("compare", SHORT, SHORT, "--window", "5"), "90 min"),
        (("compare", SHORT, SHORT, "--window", "2 h"), "no whole window"),
        (("synthesize", SHORT, "-o", "x", "--method", "window"), "did you mean windows?"),
        (("synthesize", SHORT, "-o", "x", "--length", "0 h"), "expected a time"),
        (("synthesize", SHORT, "-o", "no/where"), "no folder"),
        (("scale", SHORT, "-o", "x"), "exactly one is needed"),
        (("scale", SHORT, "-o", "x", "--data", "2", "--load", "2"), "exactly one is needed"),
        (("scale", SHORT, "-o", "x", "--nodes", "20"), "600:20"),
        (("scale", SHORT, "-o", "x", "--data", "1e10"), "positive number"),
        (("scale", SHORT, "-o", "x", "--data", "2", "--as", "tsv"), "normal or swim"),
    ],
)
def test_bad_input_is_said(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert said in done.stderr.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []
