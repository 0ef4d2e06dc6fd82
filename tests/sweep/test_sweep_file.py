"""Sweep files: allowed content, and every error of a wrong file."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from eastwest import core, shipped
from eastwest.errors import InputError, ProblemsError
from eastwest.sweep.check import check, overrides, source_of
from eastwest.sweep.check import load as load_checked
from eastwest.sweep.spec import Spec, load
from eastwest.sweep.values import Bound, between, evenly, same_kind, text
from project_paths import ROOT


def spec(tmp_path: Path, content: str) -> Spec:
    path = tmp_path / "s.toml"
    path.write_text('scenario = "first"\n' + content)
    return load(path)


def problems(tmp_path: Path, content: str) -> dict[str, str]:
    with pytest.raises(ProblemsError) as caught:
        found = spec(tmp_path, content)
        check(found, source_of(found))
    return {p["path"]: f"{p['message']} ({p['hint']})" for p in caught.value.problems}


def test_an_unknown_key_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("""
        schema = 1
        scenario = "first"
        [sample]
        count = 4
        [baseline]
        "fabric.mtu" = 1500
        [set]
        "tcp.min_roto" = "1 ms"
        [[axis]]
        path = "fabric.queue.limit"
        from = "16 KB"
        to = "64 KB"
        [[axis]]
        path = "fabric.spinse"
        values = [1, 2]
        [[axis]]
        path = "fabric.mtu"
        values = []
    """)
    with pytest.raises(ProblemsError) as caught:
        load_checked(path)
    found = {p["path"]: p["hint"] for p in caught.value.problems}
    assert found == {
        "schema": "sweep",
        "axis.2.values": None,
        "tcp.min_roto": "min_rto",
        "fabric.spinse": "spines",
    }

    path.write_text('schema = 1\nscenario = "absent"\n')
    with pytest.raises(ProblemsError, match=r"schema: .*\n  scenario: no scenario file 'absent'"):
        load_checked(path)


def axis(**keys: Any) -> dict[str, Any]:
    return load({"scenario": "first", "axis": [keys]}).axes[0].__dict__


def test_a_grid_is_walked_with_the_last_axis_fastest(tmp_path: Path) -> None:
    found = spec(
        tmp_path,
        """
        [[axis]]
        path = "fabric.spines"
        values = [1, 2]
        [[axis]]
        path = ["fabric.host_rate", "fabric.uplink_rate"]
        values = [["1 Gbit/s", "10 Gbit/s"], ["10 Gbit/s", "40 Gbit/s"]]
        """,
    )
    assert found.count == 4 and found.seeds == (1, 2, 3, 4, 5)
    assert [found.at(number) for number in range(4)] == [
        (1, "1 Gbit/s", "10 Gbit/s"),
        (1, "10 Gbit/s", "40 Gbit/s"),
        (2, "1 Gbit/s", "10 Gbit/s"),
        (2, "10 Gbit/s", "40 Gbit/s"),
    ]
    assert overrides(found, found.at(2)) == [
        ("fabric.spines", "2"),
        ("fabric.host_rate", "1 Gbit/s"),
        ("fabric.uplink_rate", "10 Gbit/s"),
    ]


def test_a_sweep_without_axes_is_one_point_with_many_seeds() -> None:
    found = load({"scenario": "s/first.toml", "seeds": [7, 3]})
    assert (found.count, found.at(0), found.seeds, found.name) == (1, (), (7, 3), "first")


@pytest.mark.parametrize(
    ("low", "high", "count", "log", "expected"),
    [
        ("1 ms", "100 ms", 3, True, ["1 ms", "10 ms", "100 ms"]),
        ("500 us", "2 ms", 4, False, ["500 us", "1000 us", "1500 us", "2 ms"]),
        ("64 KB", "1 MB", 3, False, ["64 KB", "532 KB", "1 MB"]),
        ("50 packets", "200 packets", 3, False, ["50 packets", "125 packets", "200 packets"]),
        ("1 Gbit/s", "10 Gbit/s", 3, True, ["1 Gbit/s", "3.16228 Gbit/s", "10 Gbit/s"]),
        ("0 %", "1 %", 3, False, ["0 %", "0.5 %", "1 %"]),
        ("1 min", "2 min", 3, False, ["1 min", "90 s", "2 min"]),
        (1, 9, 3, False, [1, 5, 9]),
        (0.5, 1.5, 3, False, [0.5, 1.0, 1.5]),
        (1, 1.5, 3, False, [1, 1.25, 1.5]),
    ],
)
def test_ranges_keep_their_units(
    low: Any, high: Any, count: int, log: bool, expected: list[Any]
) -> None:
    first, last = Bound.read(low), Bound.read(high)
    assert first is not None and last is not None and same_kind(first, last)
    assert between(first, last, evenly(count), log) == expected


def test_whole_numbers_that_fall_together_count_once() -> None:
    values = axis(path="fabric.spines", **{"from": 1, "to": 3, "count": 9})["values"]
    assert values == ((1,), (2,), (3,))


def test_a_sample_grows_without_moving(tmp_path: Path) -> None:
    template = """
        [sample]
        kind = "{kind}"
        count = {count}
        [[axis]]
        path = "tcp.min_rto"
        from = "1 ms"
        to = "1 s"
        scale = "log"
        [[axis]]
        path = "fabric.queue.limit"
        from = "20 packets"
        to = "2000 packets"
        [[axis]]
        path = "fabric.spines"
        values = [1, 2]
        """
    for kind in ("sobol", "random"):
        few = spec(tmp_path, template.format(kind=kind, count=5))
        many = spec(tmp_path, template.format(kind=kind, count=12))
        assert few.paths == ["fabric.spines", "tcp.min_rto", "fabric.queue.limit"]
        assert few.count == 10 and many.count == 24
        assert many.axes[1].values[:5] == few.axes[1].values
        numbers = [Bound.read(row[0]) for row in many.axes[1].values]
        assert all(n is not None and 10**9 <= n.number <= 10**12 for n in numbers)
        check(many, source_of(many))


def test_a_sobol_sample_fills_every_half_evenly() -> None:
    found = load(
        {
            "scenario": "first",
            "sample": {"count": 16},
            "axis": [{"path": p, "from": 0.0, "to": 1.0} for p in ("a", "b")],
        }
    ).axes[0]
    for place in (0, 1):
        assert sum(row[place] < 0.5 for row in found.values) == 8


def test_values_are_written_as_after_set() -> None:
    assert text("10 Gbit/s") == "10 Gbit/s"
    assert (text(True), text(3), text(0.5)) == ("true", "3", "0.5")
    table = {"kind": "drop-tail", "limit": "64 KB"}
    assert tomllib.loads(f"v = {text(table)}")["v"] == table
    names = ["h0", 'a"b']
    assert tomllib.loads(f"v = {text(names)}")["v"] == names
    found = load({"scenario": "first", "axis": [{"path": "fabric.queue", "values": [table]}]})
    check(found, source_of(found))


def test_changes_replace_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('scenario = "first"\nseeds = 9\nset = {"fabric.mtu" = 9000}\n')
    found = load(path, {"seeds": 2, "set": {"fabric.spines": 1}})
    assert found.seeds == (1, 2)
    assert found.settings == {"fabric.mtu": 9000, "fabric.spines": 1}
    again = load({**tomllib.loads(found.text)})
    assert (again.seeds, again.settings) == (found.seeds, found.settings)
    assert load(path, {"seeds": None}).text == path.read_text()


def test_all_problems_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        """
        seds = 3
        keep = "all"
        warm_up = "5 MB"
        confidence = 2
        [baseline]
        "fabric.quee" = 1
        [[axis]]
        path = "fabric.queue.limit"
        values = []
        [[axis]]
        path = "a"
        vales = [1]
        [[axis]]
        path = "b"
        from = "1 ms"
        to = "5 packets"
        [[axis]]
        path = ["c", "d"]
        values = [[1, 2], [3]]
        [[axis]]
        path = "e"
        from = 0
        to = 5
        count = 3
        scale = "log"
        [[axis]]
        path = "f"
        values = [1, 2, 1]
        [[axis]]
        path = "g"
        from = 5
        to = 1
        """,
    )
    assert found["seds"].endswith("(seeds)")
    assert found["axis.1.vales"].endswith("(values)")
    assert "more than 0 on a log scale" in found["axis.4.from"]
    assert "(time)" in found["axis.2.to"]
    assert "listed twice" in found["axis.5.values.2"]
    assert {
        "keep",
        "warm_up",
        "confidence",
        "axis.0.values",
        "axis.3.values.1",
        "axis.6.to",
    } <= set(found)


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("seeds = 0", "seeds"),
        ("seeds = [1, 1]", "seeds"),
        ("seeds = [-1]", "seeds"),
        ('seeds = "3"', "seeds"),
        ('seeds = { metric = "a", count = 3 }', "seeds.count"),
        ("seeds = { count = 3, at_most = 9 }", "seeds.at_most"),
        ('seeds = { metric = "a", at_least = 9, at_most = 3 }', "seeds.at_most"),
        ('seeds = { metric = "a", half_width = "0 %" }', "seeds.half_width"),
        ('seeds = { until = "known", metric = "a" }', "seeds.until"),
        ('seeds = { until = "apart" }', "seeds.metric"),
        ('seeds = { until = "apart", metric = "a", half_width = "1 %" }', "seeds.half_width"),
        ('seeds = { until = "decided", metric = "a" }', "seeds.metric"),
        ('seeds = { until = "decided", half_width = "1 %" }', "seeds.half_width"),
        ('seeds = { until = "decided", count = 3 }', "seeds.count"),
        ("sample = { count = 4 }", "sample"),
        ('axis = [{ path = "a", from = 1, to = 2 }]', "axis (a)"),
        ("axis = 3", "axis"),
        (
            "sample = { count = 1000000 }\naxis = ["
            + '{ path = "a", from = 1, to = 2 },' * 11
            + "]",
            "sample.count",
        ),
        ("sweep = 2", "sweep"),
        ("set = 3", "set"),
        ('baseline = { "fabric.mtu" = 1 }', "baseline.fabric.mtu"),
        ('axis = [{ path = "fabric.mtu", values = [1500], names = ["a", "b"] }]', "axis.0.names"),
        (
            'axis = [{ path = "fabric.mtu", values = [1500, 9000], names = ["a", "a"] }]',
            "axis.0.names",
        ),
        ('axis = [{ path = "fabric.mtu", values = [1500], names = "a" }]', "axis.0.names"),
        (
            'axis = [{ path = "fabric.spines", from = 1, to = 2, count = 2, names = ["a", "b"] }]',
            "axis.0.names",
        ),
        ('show = "jobs.makespan_s"', "show"),
        ("show = [1]", "show"),
        ('show = ["packets.dropped", "drops"]', "show.1"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, content: str, path: str) -> None:
    assert path in problems(tmp_path, content)


QUEUES = """
    [[axis]]
    path = "fabric.queue"
    values = [
      { kind = "drop-tail", limit = "100 packets" },
      { kind = "step-marking", limit = "100 packets", threshold = "5 packets" },
      { kind = "step-marking", limit = "100 packets", threshold = "9 packets" },
    ]
"""
CASES = 'names = ["tail", "five", "nine"]'


@pytest.mark.parametrize(
    ("baseline", "point"),
    [
        ('"fabric.queue" = { kind = "drop-tail" }', 0),
        ('"fabric.queue.threshold" = "9 packets"', 2),
        ('fabric.queue = { kind = "step-marking", threshold = "5 packets" }', 1),
        ('case = "nine"', 2),
    ],
)
def test_the_baseline_of_an_axis_of_tables_is_a_table_a_key_or_a_name(
    tmp_path: Path, baseline: str, point: int
) -> None:
    named = CASES if baseline.startswith("case") else ""
    assert spec(tmp_path, f"[baseline]\n{baseline}\n{QUEUES}{named}").baseline_point == point


@pytest.mark.parametrize(
    ("baseline", "path", "message"),
    [
        (
            '"fabric.queue" = { kind = "step-marking" }',
            "baseline.fabric.queue",
            "matches several values of this axis (step-marking, threshold 5 packets; step-marking, "
            "threshold 9 packets): set more keys of the table",
        ),
        (
            '"fabric.queue" = { kind = "red" }',
            "baseline.fabric.queue",
            "is not one of the values of this axis: drop-tail; step-marking, threshold 5 packets",
        ),
        ('case = "five"', "baseline.case", "is not one of the names of an axis: no axis has"),
        ('"fabric.quue.kind" = "red"', "baseline.fabric.quue.kind", "is not the path of an axis"),
    ],
)
def test_a_baseline_that_selects_no_value_or_several_is_refused(
    tmp_path: Path, baseline: str, path: str, message: str
) -> None:
    assert message in problems(tmp_path, f"[baseline]\n{baseline}\n{QUEUES}")[path]


def test_shipped_sweeps_are_accepted_and_shown_in_the_guide() -> None:
    pages = (ROOT / "docs" / "guide").glob("*.md")
    guide = "".join(page.read_text("utf-8") for page in pages)
    blocks = re.findall(r"^```toml\n(.*?)^```", guide, re.M | re.S)
    for path in sorted(shipped.SWEEPS.glob("*.toml")):
        found = load(path.stem)
        check(found, source_of(found))
        body = path.read_text().partition("sweep = 1")
        assert body[1] + body[2] in blocks, path.name


def test_files_that_are_no_sweep(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    for content, message in ((b"[[axis", "not TOML"), (b"\xff", "UTF-8"), (b"", "scenario")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            load(path)
    with pytest.raises(FileNotFoundError, match="sweep file"):
        load(tmp_path / "none.toml")


def test_files_that_would_take_hours_to_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    for content, message in (
        ("set." + ".".join(["a"] * 50_000) + " = 1", "line 2: .* dots"),
        ("set." + ".".join(["a"] * 50) + " = 1", "32 levels"),
        ("".join(f"a{number} = 1\n" for number in range(30_000)), "more than 20,000 signs"),
        ("set = " + "[" * 5_000, "not TOML"),
    ):
        path.write_text(f'scenario = "first"\n{content}\n')
        with pytest.raises(InputError, match=message):
            load(path)


def test_more_runs_than_fit_are_refused() -> None:
    axes = [{"path": p, "values": list(range(1000))} for p in ("a", "b", "c")]
    with pytest.raises(InputError, match="1,000,000,000 points"):
        load({"scenario": "first", "axis": axes})


def test_axes_that_contradict_each_other(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        """
        [set]
        "tcp.min_rto" = "1 ms"
        [[axis]]
        path = "seed"
        values = [1, 2]
        [[axis]]
        path = "workload.0.bytes"
        values = ["1 KB"]
        [[axis]]
        path = "workload.transfers.bytes"
        values = ["2 KB"]
        [[axis]]
        path = "fabric.queue"
        values = [{ kind = "drop-tail", limit = "64 KB" }]
        [[axis]]
        path = "fabric.queue.limit"
        values = ["64 KB"]
        [[axis]]
        path = "tcp.min_rto"
        values = ["2 ms"]
        """,
    )
    assert "seeds = 10" in found["seed"]
    assert "is set twice" in found["workload.transfers.bytes"]
    assert (
        "a key of fabric.queue, which axis fabric.queue already sets" in found["fabric.queue.limit"]
    )
    assert "[set]" in found["tcp.min_rto"]
    assert len(found) == 4


def test_every_value_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All wrong settings are found, with the nearest name, without walking the whole grid."""
    values = ", ".join(f'"{n} packets"' for n in range(1, 101))
    content = f"""
        [[axis]]
        path = "fabric.queue.limit"
        values = [{values}, "many"]
        [[axis]]
        path = "fabric.hosts_per_leef"
        values = [{", ".join(map(str, range(1, 101)))}]
        [[axis]]
        path = "workload.transfers.count"
        values = [1, -1]
        """
    calls = []
    real = core.check

    def counted(*args: Any) -> core.CheckResult:
        calls.append(args)
        return real(*args)

    monkeypatch.setattr(core, "check", counted)
    found = problems(tmp_path, content)
    assert "hosts_per_leaf" in found["fabric.hosts_per_leef"]
    assert {"fabric.queue.limit", "workload.0.count"} <= set(found)
    assert len(calls) <= 1 + 100 + 99 + 1
