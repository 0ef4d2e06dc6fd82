"""Bundles of results, sweeps and studies, and the repetition of their runs."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import eastwest as ew
from bundles import changed, contents
from command_line import invoke
from eastwest import core, shipped
from eastwest.bundle import archive, environment
from eastwest.bundle.form import Manifest
from eastwest.errors import InputError
from project_paths import DATA
from tiny import TINY

pytestmark = pytest.mark.slow

LATE = '''
import eastwest as ew
from helper import LIMIT


class Late(ew.Queue):
    """Drops what finds many packets waiting."""

    def at_enqueue(self, arrival: ew.Arrival) -> ew.Verdict:
        if not arrival.fits or arrival.queued_packets > LIMIT:
            return ew.Verdict.DROP
        return ew.Verdict.ENQUEUE
'''
SWEEP: dict[str, Any] = {
    "sweep": 1,
    "scenario": TINY,
    "axis": [{"path": "fabric.queue.limit", "values": ["5 packets", "50 packets"]}],
    "seeds": 2,
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder, with its own run store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EASTWEST_STORE", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def tiny() -> Path:
    """Return the bundle of a tiny run, without pictures."""
    ew.run(TINY, out="results/tiny")
    return ew.bundle("results/tiny", pictures=False).path


def hadoop(*traces: str) -> None:
    """Write a scenario of a minute of Hadoop, and the traces; the first is that of the scenario."""
    text = (shipped.SCENARIOS / "demo.toml").read_text()
    text = text.replace('"fb-2009"', f'"{traces[0]}"').replace('"4 h"', '"1 min"')
    Path("hadoop.toml").write_text(text)
    for trace in traces:
        Path(trace).parent.mkdir(exist_ok=True)
        content = shipped.traces()["fb-2009-first-50"].read_text()
        Path(trace).write_text(content + "\n")  # another file than the shipped one


def states(path: Path, **options: Any) -> dict[str, str]:
    """Return the states of the runs of a bundle after a rerun in this process."""
    return {each.run.name: each.state for each in ew.Bundle(path).rerun(jobs=0, **options)}


def study(folder: Path, measures: str = "") -> Path:
    """Write a study with one claim, and return its folder."""
    (folder / "claims").mkdir(parents=True)
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "tiny.toml").write_text(TINY)
    (folder / "notes.txt").write_text("read me")
    (folder / ".hidden").write_text("secret")
    if measures:
        (folder / "measures.py").write_text(measures)
    (folder / "claims" / "T1.toml").write_text(
        """
claim = 1
id = "mine/T1"
source = "Nobody 2026"
statement = "All flows complete."
published = "4 flows"
profile = "plain"

[runs.main]
scenario = "../scenarios/tiny.toml"
seeds = 3
quick = { seeds = 1 }

[[metric]]
name = "flows"
runs = "main"
measure = "mean"
value = "flows.completed"
at = {}
unit = ""
low = 3
high = 5
"""
    )
    return folder


# A result


def test_a_result_is_repeated_with_an_equal_digest() -> None:
    path = tiny()
    assert path == Path("tiny-bundle.zip")
    made = ew.Bundle(path)
    assert made.verify() == []
    (run,) = made.manifest.runs
    assert run.digest == ew.load("results/tiny").digest
    page = contents(path)[1]["README.md"].decode()
    assert f"| tiny |  | 1 | `{run.digest}` |" in page
    assert run.command in page
    assert run.command == "eastwest run result/scenario.toml --out results/tiny"
    assert states(path) == {"tiny": "equal"}
    assert sorted(p.name for p in Path().iterdir()) == ["results", "tiny-bundle.zip"]


def test_the_unpacked_folder_is_a_result_and_a_bundle() -> None:
    with zipfile.ZipFile(tiny()) as stream:
        stream.extractall()
    result = ew.load("tiny-bundle/result")
    assert result.flows.equals(ew.load("results/tiny").flows)
    assert ew.run("tiny-bundle/result", out="again").digest == result.digest
    assert states(Path("tiny-bundle")) == {"tiny": "equal"}


def test_equal_results_make_equal_bundles() -> None:
    first = tiny().read_bytes()
    assert ew.bundle("results/tiny", "second.zip", pictures=False).path.read_bytes() != b""
    second = contents(Path("second.zip"))[1]
    names = {
        name for name, data in contents(Path("tiny-bundle.zip"))[1].items() if second[name] != data
    }
    assert names == {
        "README.md",  # has the name of the archive
        "bundle.json",
    }
    ew.bundle("results/tiny", pictures=False, force=True)
    assert Path("tiny-bundle.zip").read_bytes() == first


def test_pictures_are_those_of_the_result() -> None:
    ew.run(TINY, out="results/tiny")
    made = ew.bundle("results/tiny")
    files = contents(made.path)[1]
    assert b"<html" in files["result/report.html"]
    assert files["result/overview.png"].startswith(b"\x89PNG")
    assert made.verify() == []


def test_files_that_no_run_writes_are_left_out() -> None:
    ew.run(TINY, out="results/tiny")
    Path("results/tiny/private.txt").write_text("mine")
    made = ew.bundle("results/tiny", pictures=False)
    assert "private.txt" in made.remarks[0]
    assert "result/private.txt" not in contents(made.path)[1]


@pytest.mark.parametrize("name", ["inputs/x", "queues.parquet", "scenario.toml"])
def test_links_to_files_elsewhere_are_refused(name: str) -> None:
    ew.run(TINY, out="results/tiny")
    link = Path("results/tiny", name)
    link.parent.mkdir(exist_ok=True)
    private = Path("private")
    private.write_bytes(link.read_bytes() if link.exists() else b"key")
    link.unlink(missing_ok=True)
    link.symlink_to(private.absolute())
    with pytest.raises(InputError, match="is a link: a bundle contains only regular files"):
        ew.bundle("results/tiny", pictures=False)
    assert not Path("tiny-bundle.zip").exists()


def test_an_existing_file_is_kept_unless_forced() -> None:
    path = tiny()
    before = path.read_bytes()
    with pytest.raises(InputError, match="--force"):
        ew.bundle("results/tiny")
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="is a folder"):
        ew.bundle("results/tiny", "results")
    with pytest.raises(InputError, match="no folder absent"):
        ew.bundle("results/tiny", "absent/x.zip")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("absent", "no study of this name"),
        ("eeon_ch55", "did you mean eeon_ch5?"),
        (".", "neither the folder of a result or a sweep, nor a study"),
    ],
)
def test_other_things_are_refused(name: str, why: str) -> None:
    with pytest.raises(InputError) as error:
        ew.bundle(name)
    assert why in str(error.value)


# Inputs


def test_the_shipped_trace_has_its_origin_and_licence() -> None:
    ew.run("demo", set={"workload.hadoop.trace_to": "1 min"}, out="results/jobs")
    made = ew.bundle("results/jobs", pictures=False)
    (trace,) = [file for file in made.manifest.files if file.role == "input"]
    assert "trace fb-2009" in trace.origin
    files = contents(made.path)[1]
    assert files["licences/swim.txt"] == (shipped.DATA / "swim" / "LICENSE").read_bytes()
    assert trace.path in files["README.md"].decode()


def test_a_large_input_is_described_and_found_by_its_hash() -> None:
    hadoop("mine.tsv")
    ew.run("hadoop.toml", out="results/jobs")
    made = ew.bundle(
        "results/jobs",
        pictures=False,
        largest_input=1000,
        origins={"mine.tsv": "https://example.org, CC BY 4.0"},
    )
    (absent,) = made.manifest.absent
    assert absent.origin == "https://example.org, CC BY 4.0"
    files = contents(made.path)[1]
    assert absent.path not in files
    page = files["README.md"].decode()
    assert absent.sha256 in page
    assert "CC BY 4.0" in page
    assert made.verify() == []
    with pytest.raises(InputError, match="--inputs"):
        made.rerun(jobs=0)
    Path("elsewhere").mkdir()
    with pytest.raises(InputError, match="elsewhere has no file with this SHA-256"):
        made.rerun(jobs=0, inputs="elsewhere")
    shutil.copyfile("mine.tsv", "elsewhere/renamed.txt")
    assert states(made.path, inputs="elsewhere") == {"jobs": "equal"}


def test_an_imported_trace_has_the_names_of_its_files() -> None:
    hadoop("day")
    Path("day").unlink()
    recorded = shipped.traces()["fb-2009-first-50"]
    assert invoke("trace", "import", str(recorded), "--out", "day")[0] == 0
    ew.run("hadoop.toml", out="results/jobs")
    made = ew.bundle("results/jobs", pictures=False)
    origins = {file.path: file.origin for file in made.manifest.files if file.role == "input"}
    assert [*origins] == ["result/inputs/day/jobs.tsv", "result/inputs/day/trace.json"]
    known = f"{recorded.name} (SHA-256 {archive.hashed(recorded)[1]})"
    assert known in origins["result/inputs/day/jobs.tsv"]
    made = ew.bundle("results/jobs", "b.zip", origins={"day": "CC BY 4.0"}, pictures=False)
    assert {file.origin for file in made.manifest.files if file.role == "input"} == {"CC BY 4.0"}
    assert states(made.path) == {"jobs": "equal"}


def test_an_origin_of_no_input_is_refused() -> None:
    ew.run(TINY, out="results/tiny")
    with pytest.raises(InputError, match=r"origin of 'x\.tsv': no input file"):
        ew.bundle("results/tiny", origins={"x.tsv": "somewhere"})


def test_added_files_are_in_the_bundle() -> None:
    ew.run(TINY, out="results/tiny")
    Path("eastwest-0-py3.whl").write_bytes(b"wheel")
    made = ew.bundle("results/tiny", add=["eastwest-0-py3.whl"], pictures=False)
    files = contents(made.path)[1]
    assert files["added/eastwest-0-py3.whl"] == b"wheel"
    assert "added/eastwest-0-py3.whl" in files["README.md"].decode()


# Differences


def test_another_digest_is_shown_with_numbers_and_tables() -> None:
    ew.run(TINY, set={"workload.bulk.bytes": "10 KB"}, out="other")
    path = tiny()
    table = Path("other/flows.parquet").read_bytes()
    summary = Path("other/summary.json").read_bytes()

    def edit(content: dict[str, Any]) -> None:
        content["runs"][0]["digest"] = json.loads(summary)["digest"]

    files = {"result/flows.parquet": table, "result/summary.json": summary}
    path = changed(path, Path("changed.zip"), edit, files)
    (found,) = ew.Bundle(path).rerun(jobs=0)
    assert found.state == "differs"
    assert found.message == ""
    assert found.digest == ew.load("results/tiny").digest
    fields = {field.path: field for field in found.fields}
    assert (fields["flows.bytes"].was, fields["flows.bytes"].now) == (40_000, 80_000)
    assert fields["flows.bytes"].relative == 1
    assert "wall_s" not in fields
    (difference,) = [table for table in found.tables if table.name == "flows"]
    assert "bytes in 4 of 4 rows" in difference.message
    code, said, _ = invoke("bundle", "rerun", str(path), "--jobs", "0")
    assert code == 1
    assert "flows.bytes: 40000, now 80000 (+100 %)" in said
    assert "1 run: 1 differs" in said


def test_a_difference_to_another_build_is_explained() -> None:
    def edit(content: dict[str, Any]) -> None:
        content["build"] = "0.2.0 abc"
        content["runs"][0]["digest"] = "abc"

    (found,) = ew.Bundle(changed(tiny(), Path("changed.zip"), edit)).rerun(jobs=0)
    assert "another build of this version" in found.message


def test_an_equal_digest_with_another_summary_differs() -> None:
    path = tiny()
    summary = json.loads(contents(path)[1]["result/summary.json"])
    summary["flows"]["count"] = 77
    files = {"result/summary.json": json.dumps(summary).encode()}
    (found,) = ew.Bundle(changed(path, Path("changed.zip"), files=files)).rerun(jobs=0)
    assert found.state == "differs"
    assert "equal digest, but the summary" in found.message
    assert [field.path for field in found.fields] == ["flows.count"]


def test_an_equal_digest_with_other_tables_differs() -> None:
    path = tiny()
    made = pl.read_parquet("results/tiny/flows.parquet").with_columns(pl.col("fct_us") / 10)
    made.write_parquet("forged.parquet")
    files: dict[str, bytes | None] = {"result/flows.parquet": Path("forged.parquet").read_bytes()}
    (found,) = ew.Bundle(changed(path, Path("changed.zip"), files=files)).rerun(jobs=0)
    assert found.state == "differs"
    assert found.message == "equal digest, but the bundle has other tables"
    assert [(table.name, table.message) for table in found.tables] == [
        ("flows", "fct_us in 4 of 4 rows")
    ]


def test_a_summary_with_another_digest_than_the_list_differs() -> None:
    path = tiny()
    summary = json.loads(contents(path)[1]["result/summary.json"]) | {"digest": "abc"}
    files: dict[str, bytes | None] = {"result/summary.json": json.dumps(summary).encode()}
    (found,) = ew.Bundle(changed(path, Path("changed.zip"), files=files)).rerun(jobs=0)
    assert found.state == "differs"
    assert "another digest than bundle.json" in found.message


def test_a_summary_that_is_not_the_listed_file_differs() -> None:
    path = tiny()
    top, files = contents(path)
    files["result/summary.json"] += b" "
    archive.write(Path("changed.zip"), top, files, {})
    (found,) = ew.Bundle("changed.zip").rerun(jobs=0)
    assert found.state == "differs"
    assert "summary.json was changed" in found.message


def test_other_numbers_of_another_version_are_a_remark() -> None:
    def edit(content: dict[str, Any]) -> None:
        content["runs"][0]["version"] = "0.0.9"

    path = tiny()
    summary = json.loads(contents(path)[1]["result/summary.json"])
    summary["flows"]["count"] = 77
    files: dict[str, bytes | None] = {"result/summary.json": json.dumps(summary).encode()}
    (found,) = ew.Bundle(changed(path, Path("changed.zip"), edit, files)).rerun(jobs=0)
    assert (found.state, [field.path for field in found.fields]) == ("equal", ["flows.count"])
    assert "equal digest, but other numbers" in found.message


def test_a_difference_to_another_version_is_explained() -> None:
    def edit(content: dict[str, Any]) -> None:
        content["runs"][0] |= {"digest": "abc", "version": "0.0.9"}

    (found,) = ew.Bundle(changed(tiny(), Path("changed.zip"), edit)).rerun(jobs=0)
    assert found.state == "differs"
    for words in ("Eastwest 0.0.9", f"this is {core.version()}", "eastwest==0.0.9"):
        assert words in found.message


def test_a_summary_of_a_newer_format_does_not_hinder_the_comparison() -> None:
    def edit(content: dict[str, Any]) -> None:
        content["runs"][0] |= {"format": 99, "version": "9.0.0"}

    files: dict[str, bytes | None] = {"result/summary.json": b'{"format": 99, "new": [1]}'}
    path = changed(tiny(), Path("changed.zip"), edit, files)
    (found,) = ew.Bundle(path).rerun(jobs=0)
    assert found.state == "equal"


def test_a_changed_file_is_found_before_a_run() -> None:
    path = tiny()
    top, files = contents(path)
    files["result/scenario.toml"] += b"# changed\n"
    archive.write(Path("changed.zip"), top, files, {})
    assert [each.path for each in ew.Bundle("changed.zip").verify()] == ["result/scenario.toml"]
    code, said, _ = invoke("bundle", "verify", "changed.zip")
    assert code == 1
    assert "changed: result/scenario.toml" in said
    with pytest.raises(InputError, match=r"scenario\.toml is not the file"):
        ew.Bundle("changed.zip").rerun(jobs=0)


def test_a_scenario_that_is_wrong_today_fails_alone() -> None:
    files: dict[str, bytes | None] = {"result/scenario.toml": b'schema = 1\nname = "x"\n'}
    (found,) = ew.Bundle(changed(tiny(), Path("changed.zip"), files=files)).rerun(jobs=0)
    assert found.state == "failed"
    assert "fabric" in found.message


@pytest.mark.parametrize("number", [2, 5, 8])
def test_results_of_older_formats_are_repeated(number: int) -> None:
    made = ew.bundle(DATA / f"results-format-{number}", "old.zip", pictures=False)
    (found,) = made.rerun(jobs=0)
    assert (found.run.format, found.state, found.fields) == (number, "equal", ())


def test_a_run_of_an_older_version_with_a_corrected_model_is_explained() -> None:
    made = ew.bundle(DATA / "results-format-1", "old.zip", pictures=False)
    (found,) = made.rerun(jobs=0)
    assert found.state == "differs"
    assert "the run is of Eastwest 0.1.0" in found.message
    assert "jobs.runtime_s.mean" in {field.path for field in found.fields}
    assert "jobs" in {table.name for table in found.tables}


# Hostile content


def test_a_scenario_cannot_read_files_of_the_machine(here: Path) -> None:
    hadoop("mine.tsv")
    ew.run("hadoop.toml", out="results/jobs")
    path = ew.bundle("results/jobs", pictures=False).path
    text = contents(path)[1]["result/scenario.toml"].decode()
    others = {
        str(here / "mine.tsv"): "must be a path below",
        "../../../../mine.tsv": "must be a path below",
        "fb-2010": "which is not in the bundle",
    }
    for other, why in others.items():
        files: dict[str, bytes | None] = {
            "result/scenario.toml": text.replace("inputs/mine.tsv", other).encode()
        }
        (found,) = ew.Bundle(changed(path, here / "c.zip", files=files)).rerun(jobs=0)
        assert found.state == "failed"
        assert why in found.message


def test_code_is_executed_only_if_it_is_allowed(here: Path) -> None:
    (here / "code").mkdir()
    (here / "code" / "helper.py").write_text("LIMIT = 3\n")
    file = here / "code" / "late.py"
    trace = "import pathlib; pathlib.Path('executed').touch()\n"
    file.write_text(f"import sys; sys.path.insert(0, {str(file.parent)!r})\n{LATE}{trace}")
    ew.run(TINY, set={"fabric.queue.kind": "late"}, mechanisms=[file], out="results/late")
    with pytest.raises(InputError, match=r"--with late\.py"):
        ew.bundle("results/late", pictures=False)
    Path("executed").unlink()
    made = ew.bundle("results/late", mechanisms=[file], pictures=False)
    assert made.verify() == []
    with pytest.raises(InputError, match=r"mechanisms/late\.py.*--run-code"):
        made.rerun(jobs=0)
    assert not Path("executed").exists()
    assert "mechanisms/helper.py" in contents(made.path)[1]
    assert "--run-code" in contents(made.path)[1]["README.md"].decode()
    assert states(made.path, run_code=True) == {"late": "equal"}
    assert Path("executed").exists()


def test_code_that_is_missing_is_an_error(here: Path) -> None:
    file = here / "late.py"
    file.write_text(LATE.replace("from helper import LIMIT", "LIMIT = 3"))
    ew.run(TINY, set={"fabric.queue.kind": "late"}, mechanisms=[file], out="results/late")
    path = ew.bundle("results/late", mechanisms=[file], pictures=False).path
    path = changed(path, here / "c.zip", files={"mechanisms/late.py": None})
    assert [each.what for each in ew.Bundle(path).verify()] == ["missing"]
    with pytest.raises(InputError, match=r"mechanisms/late\.py is missing"):
        ew.Bundle(path).rerun(jobs=0, run_code=True)


@pytest.mark.parametrize(
    "summary",
    [
        b"",
        b"{}",
        b"[1]",
        b"{",
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b'{"a": 1' + b"0" * 400 + b"}",
        b"\xff",
    ],
)
def test_a_damaged_summary_differs(summary: bytes) -> None:
    path = changed(tiny(), Path("c.zip"), files={"result/summary.json": summary})
    (found,) = ew.Bundle(path).rerun(jobs=0)
    assert found.state == "differs"
    assert "summar" in found.message


def test_a_damaged_table_is_a_difference_of_the_table() -> None:
    def edit(content: dict[str, Any]) -> None:
        content["runs"][0]["digest"] = "abc"

    files: dict[str, bytes | None] = {"result/flows.parquet": b"PAR1" + bytes(100) + b"PAR1"}
    (found,) = ew.Bundle(changed(tiny(), Path("c.zip"), edit, files)).rerun(jobs=0)
    assert found.state == "differs"
    assert "is damaged" in {table.name: table.message for table in found.tables}["flows"]


def test_an_interrupt_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    ew.run(TINY, out="results/tiny")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(archive, "_add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ew.bundle("results/tiny", pictures=False)
    assert [path.name for path in Path().iterdir()] == ["results"]


def test_code_that_changed_since_the_runs_is_refused(here: Path) -> None:
    file = here / "late.py"
    file.write_text(LATE.replace("from helper import LIMIT", "LIMIT = 3"))
    ew.run(TINY, set={"fabric.queue.kind": "late"}, mechanisms=[file], out="results/late")
    file.write_text(file.read_text().replace("3", "4"))
    with pytest.raises(InputError, match=r"late\.py has changed since the runs"):
        ew.bundle("results/late", mechanisms=[file])
    ew.run(TINY, out="results/tiny")
    with pytest.raises(InputError, match="no run of the bundle needs"):
        ew.bundle("results/tiny", mechanisms=[file])


# A sweep


def test_a_sweep_is_repeated_run_by_run() -> None:
    ew.sweep(SWEEP, out="results/limits", jobs=0)
    made = ew.bundle("results/limits")
    names = ["p0-s1", "p0-s2", "p1-s1", "p1-s2"]
    assert states(made.path) == dict.fromkeys(names, "equal")
    assert states(made.path, quick=True) == {"p0-s1": "equal", "p1-s1": "equal"}
    assert [*states(made.path, only=["p1"])] == ["p1-s1", "p1-s2"]
    assert [*states(made.path, only=["*-s2"])] == ["p0-s2", "p1-s2"]
    with pytest.raises(InputError, match="no run fits 'p7-s1'; did you mean"):
        made.rerun(["p7-s1"], jobs=0)
    files = contents(made.path)[1]
    assert b"<html" in files["sweep/report.html"]
    assert json.loads(files["sweep/summary.json"])["store"] == ""
    assert "fabric.queue.limit" in files["README.md"].decode()
    assert made.manifest.runs[-1].settings == {"fabric.queue.limit": "50 packets"}
    digests = [run.digest for run in made.manifest.runs]
    assert digests == ew.SweepResult("results/limits").runs["digest"].to_list()


def test_a_sweep_without_its_runs_says_how_to_get_them() -> None:
    ew.sweep(SWEEP, out="results/limits", jobs=0)
    shutil.move(".eastwest", "moved")
    with pytest.raises(InputError, match=r"lacks 4 of 4 runs .* --resume"):
        ew.bundle("results/limits")
    assert ew.bundle("results/limits", store="moved/store").verify() == []


def test_runs_share_inputs_of_equal_content_only() -> None:
    hadoop("a/t.tsv", "b/t.tsv")
    with Path("b/t.tsv").open("a") as file:
        file.write("\n")
    axis = {"path": "workload.hadoop.trace", "values": ["a/t.tsv", "b/t.tsv"]}
    ew.sweep({"scenario": "hadoop.toml", "axis": [axis], "seeds": 2}, out="s", jobs=0)
    made = ew.bundle("s", pictures=False)
    inputs = [file.path for file in made.manifest.files if file.role == "input"]
    assert inputs == ["runs/2/inputs/t.tsv", "runs/inputs/t.tsv"]
    assert set(states(made.path).values()) == {"equal"}
    with zipfile.ZipFile(made.path) as stream:
        stream.extractall()
    for run in made.manifest.runs:
        assert ew.run(f"s-bundle/{run.scenario}", out=run.name).digest == run.digest


def test_an_interrupted_rerun_resumes_from_its_folder() -> None:
    ew.sweep(SWEEP, out="results/limits", jobs=0)
    made = ew.bundle("results/limits", pictures=False)
    seen = []

    def stop(each: object) -> None:
        seen.append(each)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.rerun(jobs=0, keep="kept", done=stop)
    before = {path: path.stat().st_mtime_ns for path in Path("kept").rglob("summary.json")}
    assert len(before) == 1
    assert {each.state for each in made.rerun(jobs=0, keep="kept")} == {"equal"}
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    assert len([*Path("kept").rglob("summary.json")]) == 4


def test_processes_give_the_digests_of_this_process() -> None:
    ew.sweep(SWEEP, out="results/limits", jobs=0)
    made = ew.bundle("results/limits", pictures=False)
    assert {each.state for each in made.rerun(jobs=2)} == {"equal"}


# A study


def test_a_study_has_its_full_and_quick_runs(here: Path) -> None:
    study(here / "papers" / "mine")
    made = ew.bundle("mine", jobs=0)
    assert made.path == Path("mine-bundle.zip")
    runs = {run.name: run for run in made.manifest.runs}
    assert [*runs] == ["T1-main-p0-s1", "T1-main-p0-s2", "T1-main-p0-s3"]
    assert [run.quick for run in runs.values()] == [True, False, False]
    assert runs["T1-main-p0-s1"].used_by == ("mine/T1/main",)
    files = contents(made.path)[1]
    assert "papers/mine/notes.txt" in files
    assert not [name for name in files if "hidden" in name]
    assert "| mine/T1 | 4 flows | 4 | holds | not run |" in files["README.md"].decode()
    outcomes = json.loads(files["outcomes.json"])
    assert [outcomes[kind][0]["verdict"] for kind in ("full", "quick")] == ["holds", "holds"]
    assert states(made.path, only=["mine/T1"]) == dict.fromkeys(runs, "equal")
    assert states(made.path, quick=True) == {"T1-main-p0-s1": "equal"}
    (quick,) = ew.bundle(here / "papers" / "mine", "q.zip", quick=True, jobs=0).manifest.runs
    assert quick.name == "T1-main-quick-p0-s1"


def test_the_claims_run_in_the_unpacked_bundle(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study(here / "papers" / "mine")
    with zipfile.ZipFile(ew.bundle("mine", jobs=0).path) as stream:
        stream.extractall(here / "away")
    monkeypatch.chdir(here / "away" / "mine-bundle")
    (outcome,) = ew.claims("mine", jobs=0)
    assert outcome.verdict == "holds"


def test_a_rerun_does_not_execute_the_measures_of_a_study(here: Path) -> None:
    trace = "import pathlib; pathlib.Path('executed').touch()\n"
    study(here / "papers" / "mine", trace)
    path = ew.bundle("mine", jobs=0, quick=True).path
    Path("executed").unlink()
    assert ew.Bundle(path).verify() == []
    assert set(states(path).values()) == {"equal"}
    assert not Path("executed").exists()


def test_some_claims_of_a_study_can_be_bundled(here: Path) -> None:
    folder = study(here / "papers" / "mine")
    text = (folder / "claims" / "T1.toml").read_text()
    (folder / "claims" / "T2.toml").write_text(text.replace("mine/T1", "mine/T2"))
    made = ew.bundle("mine", jobs=0, quick=True, claims=["mine/T2"])
    assert [run.used_by for run in made.manifest.runs] == [("mine/T2/main",)]
    assert made.remarks == ("not in the bundle: runs of the other claims of the study, mine/T1",)


# The command line


def test_the_name_of_the_command_can_be_left_out() -> None:
    ew.run(TINY, out="results/tiny")
    code, said, _ = invoke("bundle", "results/tiny", "--no-pictures")
    assert code == 0
    assert said.splitlines()[-1] == "tiny-bundle.zip"
    code, said, _ = invoke("bundle", "--json", "create", "results/tiny")
    assert code == 2
    code, said, _ = invoke("bundle", "--out", "b.zip", "results/tiny", "--no-pictures", "--json")
    assert code == 0
    about = json.loads(said)
    assert (about["path"], about["kind"], about["runs"]) == ("b.zip", "result", 1)


def test_a_misspelled_command_gets_a_hint() -> None:
    code, _, said = invoke("bundle", "verfy", "x.zip")
    assert code == 2
    assert "verify" in said
    code, said, _ = invoke("bundle", "--help")
    assert code == 0
    assert all(name in said for name in ("create", "verify", "rerun"))


def test_commands_print_json() -> None:
    path = str(tiny())
    code, said, _ = invoke("bundle", "verify", path, "--json")
    assert (code, json.loads(said)["differences"]) == (0, [])
    code, said, _ = invoke("bundle", "rerun", path, "--json", "--jobs", "0")
    found = json.loads(said)
    assert (code, found["equal"]) == (0, 1)
    assert found["runs"][0]["digest"] == found["runs"][0]["expected"]


def test_json_of_a_check_has_no_control_characters_of_the_bundle() -> None:
    def edit(content: dict[str, Any]) -> None:
        content["name"] = "a\x9b31m\u202e\ud800"

    path = changed(tiny(), Path("changed.zip"), edit)
    code, said, _ = invoke("bundle", "verify", str(path), "--json")
    assert (code, json.loads(said)["name"]) == (0, "a\ufffd31m\ufffd\ufffd")


def test_an_origin_needs_a_text() -> None:
    ew.run(TINY, out="results/tiny")
    code, _, said = invoke("bundle", "results/tiny", "--origin", "x.tsv")
    assert code == 2
    assert "expected FILE=TEXT" in said


# The lock


def test_the_lock_has_the_packages_that_eastwest_needs() -> None:
    lines = environment.requirements().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    assert pinned["eastwest"] == core.version()
    assert {"polars", "numpy", "jinja2", "markupsafe", "typer"} <= {*pinned}
    assert not {"pytest", "optuna"} & {*pinned}
    hashes = [line for line in lines if "installed files: sha256:" in line]
    assert len(hashes) > 5


def test_the_manifest_describes_this_build() -> None:
    made: Manifest = ew.Bundle(tiny()).manifest
    assert made.build == core.build()
    assert made.machine["python"].startswith("CPython 3.")
