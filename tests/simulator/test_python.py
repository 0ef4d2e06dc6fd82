"""Eastwest as a Python package: names, stubs, Ctrl-C, several runs in one process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import eastwest as ew
from eastwest import core, shipped
from project_paths import ROOT


def python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_every_name_is_there_and_documented() -> None:
    for name in ew.__all__:
        found = getattr(ew, name)
        assert name.startswith("__") or found.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        _ = ew.rum


def test_importing_is_light_and_names_stay_functions(tmp_path: Path) -> None:
    code = """
import sys
import eastwest as ew
print(sorted({"polars", "numpy", "matplotlib"} & sys.modules.keys()))
import eastwest.cli, eastwest.explain.subjects, eastwest.timeline
modules = ("models", "plot", "__version__")
print(all(callable(getattr(ew, n)) for n in ew.__all__ if n not in modules))
print(ew.plot.windows.__name__)
"""
    assert python(code, tmp_path).stdout.split("\n")[:3] == ["[]", "True", "windows"]


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    done = ew.run("first", out=tmp_path / "r")
    again = ew.load(tmp_path / "r")
    assert again.digest == done.digest
    assert again.flows.equals(done.flows)
    with pytest.raises(FileNotFoundError, match="not a result folder"):
        ew.load(tmp_path)
    (tmp_path / "r" / "summary.json").write_text("{")
    with pytest.raises(ew.InputError, match="damaged"):
        ew.load(tmp_path / "r")


@pytest.mark.long
def test_the_stubs_are_those_of_the_binary() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "eastwest._core"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def keys(shape: type) -> set[str]:
    return set(get_type_hints(shape))


def test_what_the_binary_returns_has_the_declared_keys() -> None:
    text = (shipped.SCENARIOS / "first.toml").read_text()
    where = (".", str(shipped.DATA))
    seen: list[Any] = []
    slower = [("workload.transfers.bytes", "200 MB")]
    done = core.run(text, *where, slower, None, core.RunOptions(progress=seen.append))
    assert done.keys() == keys(core.CoreResult)
    assert seen, "no progress was reported"
    assert all(progress.keys() == keys(core.Progress) for progress in seen)
    assert core.check(text, *where, []).keys() == keys(core.CheckResult)
    assert core.resolve(text, *where, [], None).keys() == keys(core.Resolved)
    wrong = core.check(text, *where, [("fabric.leafs", "2")])["problems"]
    assert wrong
    assert all(problem.keys() == keys(core.Problem) for problem in wrong)


#: A run of hours unless stopped; it prints a line when the simulation is under way.
LONG = [("workload.0.bytes", "100 GB")]
CLI = f"""
import sys
from eastwest.cli import main, simulate
class Bar(simulate.RunBar):
    def __call__(self, progress):
        print("running", flush=True)
simulate.RunBar = Bar
sys.argv = ["eastwest", "run", "s1", "--out", "deep/er/r", "--set", {"=".join(LONG[0])!r}]
main()
"""
API = f"""
import sys
import eastwest as ew
try:
    said = lambda p: print("running", flush=True)
    ew.run("s1", set=dict({LONG!r}), out="deep/er/r", progress=said)
except KeyboardInterrupt:
    again = ew.run("first", out="after")
    print("stopped", len(again.digest))
    sys.exit(7)
"""


@pytest.mark.parametrize(
    ("code", "number", "status", "left"),
    [
        (CLI, signal.SIGINT, 130, set()),
        (CLI, signal.SIGTERM, 130, set()),
        (API, signal.SIGINT, 7, {"after"}),
    ],
    ids=["command", "command, terminated", "Python"],
)
def test_a_run_is_stopped_cleanly(
    tmp_path: Path, code: str, number: signal.Signals, status: int, left: set[str]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline() == "running\n", process.stderr.read()
            process.send_signal(number)
            said, complained = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == status, complained
    assert {path.name for path in tmp_path.iterdir()} == left
    if status == 130:
        assert complained == "eastwest: interrupted; no result was written\n"
    else:
        assert said.splitlines()[-1] == "stopped 32"


def test_runs_in_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    wanted: list[tuple[str, int, dict[str, str]]] = [
        ("first", 1, {}),
        ("first", 2, {}),
        ("s2", 3, {"workload.incast.rounds": "2"}),
        ("s4", 4, {"workload.hadoop.trace_to": "5 min"}),
        ("first", 1, {"fabric.queue.limit": "20 packets"}),
    ]

    def run(number: int, folder: str) -> dict[str, Any]:
        name, seed, settings = wanted[number]
        result = ew.run(name, set=settings, seed=seed, out=tmp_path / folder / str(number))
        kept = {"digest", "events", "packet_hops", "flows", "jobs", "tcp", "drops"}
        return {key: value for key, value in result.summary.items() if key in kept}

    alone = [run(number, "alone") for number in range(len(wanted))]
    with ThreadPoolExecutor(len(wanted)) as pool:
        rows = list(pool.map(lambda n: run(n, "together"), range(len(wanted))))
    assert json.dumps(rows) == json.dumps(alone)
    assert len({row["digest"] for row in rows}) == len(wanted)


def test_other_threads_go_on_during_a_run(tmp_path: Path) -> None:
    under_way, counted = threading.Event(), 0

    class EnoughError(Exception):
        pass

    def progress(_: core.Progress) -> None:
        under_way.set()
        # The other thread counts while the simulation computes: the call releases the GIL.
        if counted > 10_000:
            raise EnoughError

    def run() -> None:
        with pytest.raises(EnoughError):
            ew.run("s1", set=dict(LONG), out=tmp_path / "r", progress=progress)

    thread = threading.Thread(target=run)
    thread.start()
    under_way.wait()
    while thread.is_alive():
        counted += 1
    thread.join()
    assert counted > 10_000
    assert list(tmp_path.iterdir()) == []
