"""The command line, with a stand-in for the simulator."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from command_line import invoke
from fake_core import DROPS, PROBLEMS, FakeCore, RunError

KEYS = {
    "scenario",
    "seed",
    "version",
    "digest",
    "simulated_s",
    "wall_s",
    "cpu_s",
    "packet_hops",
    "events",
    "peak_rss_mb",
    "jobs",
    "flows",
    "latency_us",
    "throughput_bps",
    "drops",
    "tcp",
}


def test_run_prints_one_screen(fake: FakeCore) -> None:
    code, out, _ = invoke("run", "x.toml")
    assert code == 0
    lines = out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for words in ("60 done", "3,000 of 3,000", "p99 12.3 ms", "1,234 data", "3 timeouts"):
        assert words in out
    assert "results/fake-1" in out
    assert f"{1:064x}" in out


def test_the_longest_summary_fits_a_small_terminal(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = fake.run

    def long(*args: Any) -> Any:
        raw = inner(*args)
        summary = json.loads(raw["summary_json"])
        per_class = dict(summary["latency_us"])
        summary["latency_us"]["classes"] = {f"class{i}" * 9: per_class for i in range(9)}
        summary["drops"] = {"overflow": dict.fromkeys(DROPS, 123_456_789)}
        raw["summary_json"] = json.dumps(summary)
        raw["notes"] = ["word " * 200] * 9
        return raw

    monkeypatch.setattr(fake, "run", long)
    code, out, _ = invoke("run", "x.toml")
    assert code == 0
    lines = out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    assert "and 7 more" in out
    assert "8 more classes: latency_us in summary.json" in out


def test_json_is_one_object_and_nothing_else(fake: FakeCore) -> None:
    code, out, err = invoke("run", "x.toml", "--json", "--seed", "9", "--out", "r")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert set(summary) >= KEYS
    assert (summary["seed"], summary["folder"]) == (9, "r")
    assert json.loads(Path("r/summary.json").read_text())["digest"] == summary["digest"]


def test_flags_reach_the_simulator(fake: FakeCore) -> None:
    code, _, _ = invoke(
        "run", "x.toml", "--set", "a.b=1 = 2", "--set", "c=", "--reference", "--threads", "4"
    )
    assert code == 0
    assert fake.calls == [([("a.b", "1 = 2"), ("c", "")], None, True)]
    assert fake.threads == 4


def test_on_bad_row_is_set_where_a_trace_is_read(fake: FakeCore) -> None:
    Path("t.toml").write_text(
        '[[workload]]\nkind = "poisson"\n[[workload]]\ntrace = "a.tsv"\n[[workload]]\ntrace = "b"\n'
    )
    args = ("--on-bad-row", "skip", "--set", "workload.extra.trace=c", "--set", "x=1")
    assert invoke("run", "t.toml", *args)[0] == 0
    assert [pair for pair in fake.calls[0][0] if "bad" in pair[0]] == [
        ("workload.1.on_bad_row", "skip"),
        ("workload.2.on_bad_row", "skip"),
        ("workload.extra.on_bad_row", "skip"),
    ]


def test_all_problems_are_listed(fake: FakeCore) -> None:
    fake.problems = [
        *PROBLEMS,
        {"path": "", "value": None, "message": "[bold]\x1b[2J", "hint": None},
    ]
    for command in ("run", "check"):
        code, out, err = invoke(command, "x.toml")
        assert (code, out) == (2, "")
        assert "3 problems" in err
        assert "fabric.hosts_per_leef = 5: no such setting; did you mean hosts_per_leaf?" in err
        assert "fabric.mtu = 20: allowed: 576 to 9000 bytes" in err
        assert "[bold]\ufffd[2J" in err
    assert not Path("results").exists()
    code, out, _ = invoke("check", "x.toml", "--json")
    assert code == 2
    assert len(json.loads(out)["problems"]) == 3


def test_check_of_a_good_scenario(fake: FakeCore) -> None:
    code, out, _ = invoke("check", "x.toml")
    assert code == 0
    assert "no problems" in out
    # Parts below 1 % are not named; the memory of the program is a part like the others.
    assert "memory: at least " in out and "the program" in out and "3 MB" in out
    assert "over-subscribed" in out


@pytest.mark.parametrize(
    "args",
    [
        ("run",),
        ("run", "nope.toml"),
        ("run", "x.toml", "--set", "no-equals-sign"),
        ("run", "x.toml", "--set", "=1"),
        ("run", "x.toml", "--seed", "-1"),
        ("run", "x.toml", "--threads", "0"),
        ("run", "x.toml", "--on-bad-row", "guess"),
        ("run", "x.toml", "--nope"),
        ("run", "x.toml", "--out", "x.toml"),
        ("check", "nope.toml"),
        ("report", "nope"),
        ("bench", "nope"),
        ("topology", "show", "nope.toml"),
        ("nope",),
    ],
)
def test_bad_input_is_exit_code_2(fake: FakeCore, args: tuple[str, ...]) -> None:
    code, out, err = invoke(*args)
    assert code == 2, (out, err)
    assert err.strip()
    assert "Traceback" not in err


def test_a_flow_that_cannot_finish_is_reported(fake: FakeCore) -> None:
    fake.raises = RunError("flow 7 (h0 to h5) can no longer finish")
    code, out, err = invoke("run", "x.toml")
    assert (code, out) == (2, "")
    assert "flow 7 (h0 to h5) can no longer finish" in err


def test_a_full_disk_is_said_plainly(fake: FakeCore) -> None:
    fake.raises = OSError(errno.ENOSPC, "No space left on device", "results/x")
    code, _, err = invoke("run", "x.toml")
    assert code == 2
    assert "results/x: the disk is full; nothing was written" in err


def test_interrupted(fake: FakeCore) -> None:
    fake.raises = KeyboardInterrupt()
    code, _, err = invoke("run", "x.toml")
    assert code == 130
    assert "no result was written" in err
    assert not Path("results").exists()


@pytest.mark.parametrize("kind", [AssertionError, ValueError, TypeError, BaseException])
def test_our_bugs_ask_for_a_report(fake: FakeCore, kind: type[BaseException]) -> None:
    fake.raises = kind("queue 3 holds −1 packets (seed 42)")
    code, out, err = invoke("run", "x.toml", "--json")
    assert (code, out) == (3, "")
    assert "Please report" in err
    assert "seed 42" in err
    assert "Eastwest 0.1.0" in err


def test_schema_version_topology(fake: FakeCore) -> None:
    assert json.loads(invoke("schema")[1])["schema"] == 1
    assert invoke("version")[1].startswith("eastwest 0.1.0")
    assert json.loads(invoke("version", "--json")[1])["version"] == "0.1.0"
    assert "leaf-spine" in invoke("topology", "list")[1]
    shown = invoke("topology", "show", "x.toml")[1]
    assert "1 hosts to switches, 1 Gbit/s each way, 5 µs" in shown
    assert "over-subscribed" in shown
    assert json.loads(invoke("topology", "show", "x.toml", "--json")[1])["hosts"] == 1


def test_report_writes_a_page(fake: FakeCore) -> None:
    invoke("run", "x.toml", "--out", "a")
    invoke("run", "x.toml", "--out", "b", "--seed", "2")
    code, out, _ = invoke("report", "a", "--png", "p.png")
    assert (code, out.split()) == (0, ["p.png", "a/report.html"])
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = invoke("report", "a", "b", "--out", "both.html")
    assert (code, out.strip()) == (0, "both.html")
    assert "2 results compared" in Path("both.html").read_text()
    # The folder of a sweep has no tables of runs: it is refused before a page is written.
    Path("swept").mkdir()
    code, _, err = invoke("report", "swept", "--png", "s.png")
    assert code == 2 and err.startswith("eastwest: --png needs the result of one run"), err
    assert not list(Path("swept").iterdir())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "explain r jobs 3",
            "explain 'jobs': expected flow, exchange, job, task, connection, program, packet or "
            "slowest",
        ),
        ("run x.toml --on-bad-row skp", "--on-bad-row 'skp': expected stop or skip"),
        ("drill --profile linx x.pkt", "--profile 'linx': expected linux or classic"),
    ],
)
def test_a_choice_that_is_none_is_named_with_the_nearest(
    fake: FakeCore, command: str, message: str
) -> None:
    code, _, err = invoke(*command.split())
    assert code == 2
    nearest = {"jobs": "job", "skp": "skip", "linx": "linux"}[message.split("'")[1]]
    assert err == f"eastwest: {message}; did you mean {nearest}?\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "RUN", "--out", "absent/page.html"],
        ["timeline", "RUN", "--out", "absent/t.json"],
        ["model", "incast", "--csv", "absent/m.csv"],
        ["report", "RUN", "--png", "picture.bmp"],
    ],
)
def test_a_file_that_cannot_be_written_is_named(fake: FakeCore, arguments: list[str]) -> None:
    assert invoke("run", "x.toml", "--out", "RUN")[0] == 0
    code, _, err = invoke(*arguments)
    assert code == 2
    assert err.startswith(f"eastwest: {arguments[-1]}: ")
