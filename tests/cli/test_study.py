"""The command of studies: missing runs, expected time, and pages from existing runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure

from eastwest.cli.study import (
    Labels,
    Part,
    command,
    common,
    decided,
    grid_sweeps,
    interval,
    keep_table,
    missing_of,
    outlook,
    points_of,
    policy_of,
    ratios,
)
from eastwest.errors import InputError
from eastwest.plot.panels import error, keep, panels, seeds_of
from eastwest.store import Store
from eastwest.sweep.spec import Spec

SCENARIO = """
schema = 1
name = "tiny"
[fabric]
kind = "star"
hosts = 3
host_rate = "1 Gbit/s"
[[workload]]
name = "bulk"
kind = "permutation"
bytes = "20 KB"
"""
GRID = """
[all]
scenario = "tiny.toml"
seeds = 3
quick = { seeds = 1 }

[rates]
axis = [{ path = "fabric.host_rate", values = ["1 Gbit/s", "2 Gbit/s"] }]
"""
PROFILES = """
[linux]
about = "Today's."
seeds = 2
set = { "tcp.profile" = "linux" }
"""
READINGS = """
[best]
about = "As the source has it."
since = "2026-11-25"
[[best.value]]
what = "TCP"
words = "w"
where = "section 1"
set = { "tcp.profile" = "classic", "tcp.min_rto" = "10 ms", "fabric.host_rate" = "4 Gbit/s" }
[first]
about = "As the files have it."
since = "2026-11-24"
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "papers" / "tiny"
    folder.mkdir(parents=True)
    for name, text in {"tiny": SCENARIO, "grid": GRID, "profiles": PROFILES}.items():
        (folder / f"{name}.toml").write_text(text)
    monkeypatch.setenv("EASTWEST_STORE", str(tmp_path / "store"))
    return folder


def part_of(study: Path) -> Part:
    def labels(tcp: str, spec: Spec, number: int) -> Labels:
        return {"tcp": tcp, "rate": decided(spec, number)["fabric.host_rate"]}

    return Part("tiny", grid_sweeps(study, "linux"), labels, lambda *_: 60.0)


def fct(summary: Mapping[str, Any]) -> dict[str, float]:
    return {"fct_us": float(summary["flows"]["fct_us"]["mean"])}


def test_a_grid_has_the_settings_of_a_reading_but_for_its_own_and_its_profiles(study: Path) -> None:
    (study / "readings.toml").write_text(READINGS)
    sweeps = grid_sweeps(study, "linux", read_as="best")
    assert [(name, dict(spec.settings)) for name, spec in sweeps] == [
        ("plain", {"tcp.profile": "classic", "tcp.min_rto": "10 ms"}),
        ("linux", {"tcp.profile": "linux", "tcp.min_rto": "10 ms"}),
    ]
    assert not grid_sweeps(study)[0][1].settings
    with pytest.raises(InputError, match="has no reading 'worst'"):
        grid_sweeps(study, read_as="worst")


def test_a_study_says_what_is_missing_runs_it_and_goes_on(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part, store = part_of(study), Store()
    assert [(tcp, len(spec.seeds)) for tcp, spec in part.sweeps] == [("plain", 3), ("linux", 2)]
    absent = missing_of(part, store)
    assert [each.runs for each in absent] == [6, 4]
    assert sum(each.cpu_s for each in absent) == pytest.approx(600)
    assert "10 runs are missing: about" in outlook(absent)

    told: list[tuple[int, bool]] = []

    def finish(part: Part, store: Store, read: bool) -> None:
        told.append((sum(len(point.runs) for point in points_of(part, store, fct)), read))

    parts = {"tiny": partial(part_of, study)}
    command(["--plan"], parts, finish)
    assert "10 runs are missing" in capsys.readouterr().err
    command(["--kept"], parts, finish)
    command([], parts, finish)
    command(["tiny", "--draw"], parts, finish)
    assert told == [(0, True), (10, True), (10, False)]
    assert outlook(missing_of(part, store)) == "no runs are missing"
    with pytest.raises(SystemExit, match="unknown arguments: chapter9; allowed:"):
        command(["chapter9"], parts, finish)
    with pytest.raises(SystemExit, match="--dask needs the address"):
        command(["tiny", "--dask"], parts, finish)
    # Nothing is missing, so the Dask scheduler, which does not exist, is not contacted.
    command(["tiny", "--dask", "tcp://127.0.0.1:1"], parts, finish)
    assert told[-1] == (10, True)

    # A run is expected to last as long as other runs of its point.
    lost = store.folder(next((store.path / "runs").glob("*/*")).name)
    for file in lost.iterdir():
        file.unlink()
    lost.rmdir()
    [again] = [each for each in missing_of(part, store) if each.runs]
    assert (again.runs, again.cpu_s < 10) == (1, True)

    points = points_of(part, store, fct)
    slow, fast = points[0].runs, points[1].runs
    assert common(points[1]) == ["fct_us"]
    assert all(share > 1 for share in ratios(slow, fast, "fct_us"))


def test_what_there_is_not_has_no_mean() -> None:
    assert interval([]) == {"n": 0, "mean": None, "low": None, "high": None}
    assert interval([1.0, 3.0])["mean"] == 2.0


def test_policies_have_the_labels_of_the_thesis() -> None:
    def held(hold: str, trigger: str, links: str = "energy") -> dict[str, str]:
        return {
            f"fabric.{links}.kind": "coalescing",
            f"fabric.{links}.hold": hold,
            f"fabric.{links}.trigger": trigger,
        }

    long, short = ("1 ms", "1000 packets"), ("12 us", "10 packets")
    assert policy_of({}) == "legacy"
    assert policy_of({"fabric.energy.kind": "standard"}) == "nopa"
    assert policy_of({"fabric.energy.kind": "ideal"}) == "ideal"
    stall = {"fabric.energy.kind": "stall-timer", "fabric.energy.stall": "50 us"}
    assert policy_of(stall) == "stall 50 us"
    assert policy_of(held("0 s", "1 packets")) == "nopa"
    assert policy_of(held(*long)) == "1ms1000"
    assert policy_of({**held(*long), **held(*long, "host_energy")}) == "1ms1000"
    assert policy_of({**held(*long), **held(*short, "host_energy")}) == "12us10+"
    assert policy_of({**held(*short), "fabric.host_energy.kind": "standard"}) == "12us10"


def test_pictures_say_how_many_seeds_stand_behind_them() -> None:
    def table(*seeds: int) -> pl.DataFrame:
        rows = [{"n": n, "mean": 2.0, "low": 1.5, "high": 3.0 if n > 1 else None} for n in seeds]
        return pl.DataFrame(rows)

    assert seeds_of(table(0)) == "no runs yet"
    assert seeds_of(table(0, 1)) == "one seed"
    assert seeds_of(table(5, 5)) == "5 seeds"
    assert seeds_of(table(3, 20)) == "3 to 20 seeds"
    assert error(table(1, 2)) == [[0.5, 0.5], [0.0, 1.0]]
    figure, grid = panels(2, 3, (3.0, 2.0), "six")
    assert len(figure.axes) == 6
    assert [len(row) for row in grid] == [3, 3]


def test_a_kept_table_has_every_digit(tmp_path: Path) -> None:
    table = pl.DataFrame({"runtime_s": [12.089612, 12.089688, 1.0]})
    keep_table(table, tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet").equals(table)
    keep_table(table, tmp_path / "t.csv")
    assert pl.read_csv(tmp_path / "t.csv")["runtime_s"].n_unique() == 3


def test_only_pictures_that_the_page_shows_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "study"
    folder.mkdir(parents=True)
    pictures = {name: lambda _: Figure() for name in ("shown", "other")}
    (tmp_path / "README.md").write_text("![a](results/study/shown.svg)\n")
    keep(pictures, pl.DataFrame(), folder)
    assert [path.name for path in folder.iterdir()] == ["shown.svg"]
