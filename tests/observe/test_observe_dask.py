"""Spans read on a real Dask cluster: the folder equals that of one machine, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import spans_made
from dask_cluster import LocalCluster, cluster
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.observe import take_cluster
from eastwest.observe.take import import_spans
from eastwest.traces.made import Imported
from project_paths import DATA
from spans_made import Made, a_call

pytestmark = pytest.mark.slow

NEZHA = DATA / "spans" / "nezha-first-20-s.csv.gz"
TABLES = ("spans.parquet", "resources.parquet", "spans.json")


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Start a scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("dask"), 2) as found:
        found.wait_for_workers(2)
        yield found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write files of several formats.

    They have traces that are divided over two files, repeated spans, and missing parents.
    """
    made = tmp_path_factory.mktemp("files")
    found = [NEZHA]
    for number, kind in enumerate(("otlp-json", "jaeger", "zipkin", "otlp-proto", "otlp-json")):
        folder = made / str(number)
        folder.mkdir()
        spans = [
            *a_call(),  # These spans are the same in each file, so they are repeated.
            Made(100 + number, 99 + number if number else 0, number, 50, host="bcdef"[number]),
            # The parent of this span is missing.
            Made(200 + number, 999, number, 50, service=f"s{number}", trace=7),
        ]
        found.append(spans_made.write(folder, spans, kind))
    return found


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in TABLES}


def said(imported: Imported) -> tuple[object, ...]:
    problems = imported.account.as_json()
    return imported.source_format, imported.about, problems


def test_workers_read_what_one_machine_reads(
    dask: LocalCluster, files: list[Path], tmp_path: Path
) -> None:
    here = import_spans(files, tmp_path / "here")
    steps: list[tuple[str, float]] = []
    there = import_spans(
        files, tmp_path / "there", dask=dask.address, told=lambda *step: steps.append(step)
    )
    assert bytes_of(tmp_path / "here") == bytes_of(tmp_path / "there")
    assert said(here) == said(there)
    reasons = set(here.account.noted)
    assert {
        "duplicate of a span: left out",
        "a span whose parent is missing: it becomes a root",
    } <= reasons
    assert steps[-1] == ("6 of 6 files", 1.0)


def test_the_command_says_the_same(
    dask: LocalCluster, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Workers run in another folder, so paths must be sent as absolute ones.
    monkeypatch.chdir(files[1].parent)
    names = [files[1].name, str(files[0])]
    command = ["observe", "import", *names, "--json", "-o"]
    here = CliRunner().invoke(app, [*command, str(tmp_path / "here")])
    there = CliRunner().invoke(app, [*command, str(tmp_path / "there"), "--dask", dask.address])
    assert here.exit_code == there.exit_code == 0, there.output
    expected, found = json.loads(here.stdout), json.loads(there.stdout)
    assert expected.pop("path") != found.pop("path")
    assert expected == found


def test_what_is_wrong_with_a_file_is_told_as_here(
    dask: LocalCluster, files: list[Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.json"
    text = json.loads(files[1].read_text())
    text["resourceSpans"][-1]["scopeSpans"][0]["spans"][0]["spanId"] = 7
    bad.write_text(json.dumps(text))
    for options in ({"on_bad_row": "stop"}, {"source_format": "zipkin"}):
        with pytest.raises(InputError) as here:
            import_spans([files[0], bad], tmp_path / "here", **options)  # type: ignore[arg-type]
        with pytest.raises(InputError) as there:
            import_spans([files[0], bad], tmp_path / "there", dask=dask.address, **options)  # type: ignore[arg-type]
        assert str(here.value) == str(there.value)
    skipped = [
        said(import_spans([bad, files[0]], tmp_path / name, on_bad_row="skip", dask=address))
        for name, address in (("here", None), ("there", dask.address))
    ]
    assert skipped[0] == skipped[1]
    with pytest.raises(
        InputError, match=r"does not exist on worker .*: every worker must find the files"
    ):
        import_spans([tmp_path / "gone"], tmp_path / "gone-too", dask=dask.address)
    assert not list(tmp_path.glob(".partial-*"))


def test_a_worker_killed_in_the_middle_costs_nothing(files: list[Path], tmp_path: Path) -> None:
    import_spans(files, tmp_path / "here")
    with cluster(tmp_path / "own", 2) as own:
        own.wait_for_workers(2)

        def kill(_: str, share: float) -> None:
            if own.workers[0].poll() is None:
                own.workers[0].kill()

        import_spans(files, tmp_path / "there", dask=own.address, told=kill)
    assert bytes_of(tmp_path / "here") == bytes_of(tmp_path / "there")


def test_a_scheduler_that_ends_is_told(files: list[Path], tmp_path: Path) -> None:
    with cluster(tmp_path / "own", 1) as own:
        own.wait_for_workers(1)

        def end(_: str, share: float) -> None:
            own.stop()

        with pytest.raises(InputError, match=r"has ended, or was restarted|no Dask scheduler"):
            import_spans(files * 3, tmp_path / "there", dask=own.address, told=end)
    assert not (tmp_path / "there").exists()


def test_spans_of_a_file_have_a_greatest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(take_cluster, "MOST_PACKED", 1000)
    with pytest.raises(InputError, match="the limit for one worker: divide the file"):
        take_cluster._read(str(NEZHA), NEZHA.name, "auto", True)
