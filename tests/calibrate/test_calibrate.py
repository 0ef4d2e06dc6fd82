"""``eastwest calibrate``: usable histories, damaged histories, and the estimated profiles."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import project_paths
from eastwest.calibrate import Containers, HistoryError, calibrate, read, toml_text
from eastwest.calibrate.containers import Cores
from eastwest.cli import app

DATA = project_paths.DATA / "jhist"
TERASORT = [DATA / f"{name}.jhist.gz" for name in ("unshaped-1", "r50-deep-1", "r50-deep-2")]
RATES = [None, 50e6, 50e6]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)])


@pytest.fixture
def altered(tmp_path: Path) -> Callable[..., Path]:
    """Return a maker of histories in which a function changed each record.

    ``None`` drops the record.
    """

    def alter(change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Path:
        lines = gzip.decompress(TERASORT[1].read_bytes()).decode().splitlines()
        kept = lines[:2]
        for line in filter(None, lines[2:]):
            record = change(json.loads(line))
            kept.append(json.dumps(record) if record else "")
        path = tmp_path / "altered.jhist"
        path.write_text("\n".join(kept), "utf-8")
        return path

    return alter


def test_a_history_is_read() -> None:
    history = read(TERASORT[1])
    assert (history.name, history.status) == ("TeraSort", "SUCCEEDED")
    assert history.finished_s == pytest.approx(46.971)
    maps, reduces = history.of("map"), history.of("reduce")
    assert (len(maps), len(reduces)) == (8, 4)
    assert maps[0].started_s == pytest.approx(4.459)
    assert {m.locality for m in maps} == {"NODE_LOCAL"}
    assert sum(r.counters["REDUCE_SHUFFLE_BYTES"] for r in reduces) == 558_345_408
    assert reduces[0].sorted_s == pytest.approx(44.798)
    assert history.skews_s == {}


def test_a_history_with_blank_lines_is_read() -> None:
    history = read(DATA / "pi.jhist.gz")
    assert history.name == "QuasiMonteCarlo"
    assert [len(history.of(kind)) for kind in ("map", "reduce")] == [1, 1]


def test_estimates_make_the_jobs_they_are_from() -> None:
    found = calibrate(TERASORT, RATES)
    assert 2 < found.value("costs.task_start") < 3.5
    assert 5e6 < found.value("costs.map_rate") < 8e6
    assert 70e6 < found.value("costs.disk_rate") < 130e6
    assert 3 < found.value("control.job_setup") < 5
    assert [abs(job.residual) < 0.05 for job in found.jobs] == [True] * 3
    assert found.warnings == []
    with pytest.raises(KeyError):
        found.value("costs.none")


def test_a_phase_that_is_twice_as_long_has_half_the_rate(altered: Callable[..., Path]) -> None:
    def slower(record: dict[str, Any]) -> dict[str, Any]:
        for event in record["event"].values():
            if "sortFinishTime" in event:
                event["sortFinishTime"] += event["sortFinishTime"] - event["shuffleFinishTime"]
                event["finishTime"] += 10_000
            elif "finishedReduces" in event:
                event["finishTime"] += 10_000
        return record

    once = calibrate([TERASORT[1]]).value("costs.disk_rate")
    twice = calibrate([altered(slower)]).value("costs.disk_rate")
    assert twice == pytest.approx(once / 2)


def test_tasks_on_few_cores_get_less_core_time_than_time() -> None:
    history = read(TERASORT[1])
    first = history.of("map")[0]
    own = Cores(history, Containers(), 2.4).time(first.host, 5.0, 9.0)
    assert own == 4
    # Eight maps run between 5 and 9 s: four workers with two each, on one machine or on four.
    together = Cores(history, Containers(2, 4), 2.4)
    assert together.time(first.host, 5.0, 9.0) == pytest.approx(4 * 2 / 8)
    assert Cores(history, Containers(2), 2.4).time(first.host, 5.0, 9.0) == 4
    assert Cores(history, Containers(1), 2.4).time(first.host, 5.0, 9.0) == 2
    # Reduces start from 21.562 s on, and wait for the network from 2.4 s after their start on.
    assert together.time("w2", 22.0, 23.0) == pytest.approx(2 / 4)
    assert together.time("w2", 30.0, 40.0) == 10


def test_costs_in_core_time_make_the_jobs_they_are_from() -> None:
    found = calibrate(TERASORT, RATES, cluster=Containers(2, 4))
    assert 0.8 < found.value("costs.task_start") < 1.5
    assert 0.5 < found.value("costs.task_start_jitter") < 1
    assert 30e6 < found.value("costs.sort_rate") < 50e6
    assert 120e6 < found.value("costs.merge_rate") < 170e6
    assert 80e6 < found.value("costs.reduce_rate") < 140e6
    assert 1 < found.value("yarn.am_start") < 1.6
    assert 0.3 < found.value("control.job_setup") < 1
    assert [abs(job.residual) < 0.05 for job in found.jobs] == [True] * 3
    # The number of reduces on the cores differs, so core time describes them better than wall time.
    worst = {e.key: abs(e.residual_median) for e in found.estimates}
    assert worst["costs.reduce_rate"] < 0.1
    assert "[yarn]" in toml_text(found)
    with pytest.raises(KeyError):
        found.value("costs.disk_rate")


def test_the_first_bytes_on_a_link_tell_the_start_where_they_were_seen() -> None:
    one = Containers(4, 4)
    seen = calibrate([TERASORT[1]], [50e6], cluster=one, first_percents_s=[2.6])
    # 1 % of the 105 MB that a worker gets from the others takes 0.175 s, and the launch takes 0.2
    # s; the expected minimum of four starts has a fifth of the jitter; four cores are enough for
    # four tasks.
    start = seen.value("costs.task_start") + seen.value("costs.task_start_jitter") / 5
    assert start == pytest.approx(2.6 - 0.175 - 0.2, abs=0.01)
    with pytest.raises(ValueError, match="2 times of first bytes are given for 1 histories"):
        calibrate([TERASORT[1]], [50e6], cluster=one, first_percents_s=[2.6, 2.5])


def test_the_command_estimates_for_containers(tmp_path: Path) -> None:
    out = tmp_path / "machine.toml"
    options = ["--containers", "--cores", "2", "--workers-per-machine", "4"]
    assert run("--jhist", TERASORT[1], *options, "--out", out).exit_code == 0
    assert "merge_rate" in out.read_text("utf-8")
    refused = run("--jhist", TERASORT[1], "--cores", "2")
    assert refused.exit_code == 2
    assert "--cores and --workers-per-machine need --containers" in refused.stderr


def test_clock_skew_is_said_and_left_out(altered: Callable[..., Path]) -> None:
    def skewed(record: dict[str, Any]) -> dict[str, Any]:
        for event in record["event"].values():
            if event.get("hostname") == "w3":
                for stamp in ("mapFinishTime", "shuffleFinishTime", "sortFinishTime"):
                    if stamp in event:
                        event[stamp] -= 60_000
        return record

    path = altered(skewed)
    assert list(read(path).skews_s) == ["w3"]
    found = calibrate([path])
    assert "the clock of w3 is behind by 52.3 s or more" in found.warnings[0]
    assert found.value("costs.disk_rate") > 1e6
    result = run("--jhist", path)
    assert result.exit_code == 0
    assert "the clock of w3 is behind" in result.stderr


def test_a_task_that_ends_before_it_starts_is_said_and_left_out(
    altered: Callable[..., Path],
) -> None:
    ends: list[str] = []

    def backwards(record: dict[str, Any]) -> dict[str, Any]:
        for event in record["event"].values():
            if event.get("hostname") == "w2" and "mapFinishTime" in event:
                ends.append(event["attemptId"])
                event["finishTime"] -= 3_600_000
        return record

    found = calibrate([altered(backwards)])
    assert ends
    assert "the clock of w2 is " in found.warnings[0]
    assert "the tasks of this host are left out" in found.warnings[0]


def test_profile_is_what_a_scenario_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("--jhist", *TERASORT, "--link-rate", "50 Mbit/s", "--out", "m.toml")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "m.toml").read_text("utf-8").startswith("# Machine profile")
    lines = result.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "task_start" in result.stdout
    assert "TeraSort" in result.stdout
    (tmp_path / "x.toml").write_text(
        "schema = 1\n[fabric]\nkind = 'star'\nhosts = 5\nhost_rate = '1 Gbit/s'\n[[workload]]\n"
        "name = 'h'\nkind = 'mapreduce'\nmachine = 'm.toml'\n[[workload.job]]\nkind = 'terasort'\n"
        "input = '1 GB'\n",
        "utf-8",
    )
    checked = CliRunner().invoke(app, ["check", str(tmp_path / "x.toml")])
    assert checked.exit_code == 0, checked.output


def test_json_has_every_number() -> None:
    result = run("--json", "--jhist", TERASORT[0], TERASORT[1])
    found = json.loads(result.stdout)
    assert {e["key"] for e in found["estimates"]} >= {"costs.map_rate", "control.job_setup"}
    assert len(found["jobs"]) == 2
    assert found["jobs"][0]["observed_s"] == pytest.approx(30.176)


def test_a_file_cut_anywhere_is_refused_with_its_line(tmp_path: Path) -> None:
    whole = gzip.decompress(TERASORT[0].read_bytes())
    path = tmp_path / "cut.jhist"
    for share in (0.0, 0.01, 0.3, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(HistoryError, match=r"cut\.jhist(:\d+)?: "):
            read(path)
    path.write_bytes(TERASORT[0].read_bytes()[:3000])
    with pytest.raises(HistoryError, match=r"cut\.jhist:\d+: the compressed file is damaged"):
        read(path)
    result = run("--jhist", path)
    assert result.exit_code == 2
    assert "truncated" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "is empty"),
        (b"hello\n", ":1: starts with 'hello', but a job history starts with 'Avro-Json'"),
        (b"Obj\x01\xff\xfe", ":1: is not text; it looks like an Avro container file"),
        (b"Avro-Json\n{}\n", ":2: ends before the event of the job's submission"),
        (b"Avro-Json\n{}\n[1]\n", ":3: is not a record of a job history"),
        (b"Avro-Json\n{}\n{}\n", ":3: is not a record of a job history"),
        (b"Avro-Json\n{}\n" + b"[" * 100_000 + b"\n", ":3: is no"),
        (
            b'Avro-Json\n{}\n{"event": {"a.JobSubmitted": {"jobid": "j", "jobName": "n", '
            b'"submitTime": -5}}}\n',
            ":3: is not a record of a job history (a time is -5, not ms since 1970)",
        ),
    ],
)
def test_what_is_no_history_is_refused(tmp_path: Path, text: bytes, expected: str) -> None:
    path = tmp_path / "x.jhist"
    path.write_bytes(text)
    with pytest.raises(HistoryError) as error:
        read(path)
    assert expected in str(error.value)


def test_jobs_that_failed_tell_nothing(altered: Callable[..., Path]) -> None:
    def failed(record: dict[str, Any]) -> dict[str, Any]:
        for kind, event in list(record["event"].items()):
            if kind.endswith("JobFinished"):
                end = {"jobid": event["jobid"], "finishTime": event["finishTime"]}
                record["event"] = {"x.JobUnsuccessfulCompletion": end | {"jobStatus": "KILLED"}}
        return record

    result = run("--jhist", altered(failed))
    assert result.exit_code == 2
    assert "the job ended with the status KILLED" in result.stderr


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    cases: list[tuple[list[str | Path], str]] = [
        (["--jhist", tmp_path / "none.jhist"], "the file does not exist"),
        (["--jhist", TERASORT[0], "--link-rate", "fast"], "must be a rate"),
        (
            ["--jhist", TERASORT[0], "--link-rate", "-", "--link-rate", "-"],
            "2 rates are given for 1 histories",
        ),
    ]
    for arguments, expected in cases:
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert expected in result.stderr
    assert "[calibration]" in toml_text(calibrate([TERASORT[0]]))
