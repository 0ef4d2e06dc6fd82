"""Runs that claims share in a grid, and measures over many settings of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest.claims import grid
from eastwest.claims.measures import MeasureError, means
from eastwest.claims.measures import settings as many
from eastwest.claims.measures.base import Data, Sample
from eastwest.claims.spec import load
from eastwest.errors import ProblemsError

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
seeds = 2
quick = { seeds = 1 }

[plain]
axis = [{ path = "fabric.host_rate", values = ["1 Gbit/s", "2 Gbit/s", "4 Gbit/s"] }]
[plain.set]
"tcp.initial_window" = 10

[small]
axis = [{ path = "fabric.host_rate", values = ["1 Gbit/s", "2 Gbit/s", "4 Gbit/s"] }]
[small.set]
"tcp.initial_window" = 1
"""
CLAIM = """
claim = 1
id = "tiny/A1"
source = "nobody"
statement = "A small window is slower."
published = "slower"
profile = "plain"
grid = "../grid.toml"
open = [{ what = "a", chosen = "b", because = "c" }]

[runs.small]
grid = "small"
only = { "fabric.host_rate" = ["2 Gbit/s", "4 Gbit/s"] }

[[metric]]
name = "longer"
runs = ["small", "plain"]
measure = "mean-reduction"
value = "flows.fct_us.mean"
at = { "tcp.initial_window" = 1 }
against = { "tcp.initial_window" = 10 }
factor = -100
unit = "%"
low = 1
"""


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    study = tmp_path / "papers" / "tiny"
    (study / "claims").mkdir(parents=True)
    (study / "tiny.toml").write_text(SCENARIO)
    (study / "grid.toml").write_text(GRID)
    path = study / "claims" / "A1.toml"
    path.write_text(CLAIM)
    return path


def test_a_claim_takes_its_runs_from_the_grid(claim: Path) -> None:
    read = load(claim)
    assert read.runs["plain"].count == 3 and read.runs["small"].count == 2
    assert read.runs["small"].settings == {"tcp.initial_window": 1}
    assert len(read.runs["small"].seeds) == 2 and len(read.quick["small"].seeds) == 1


def test_a_claim_changes_with_the_tables_it_uses_and_no_others(claim: Path) -> None:
    grid = claim.parent.parent / "grid.toml"
    first = load(claim).digest
    grid.write_text(f"{GRID}\n[other]\nseeds = 3\n")
    assert load(claim).digest == first
    further = '"tcp.initial_window" = 10\n"tcp.min_rto" = "9 ms"'
    grid.write_text(GRID.replace('"tcp.initial_window" = 10', further))
    assert load(claim).digest != first


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('grid = "small"', 'grid = "smal"', "runs.small.grid"),
        ('"4 Gbit/s"]', '"5 Gbit/s"]', None),
        (
            '{ "fabric.host_rate" = ["2 Gbit/s", "4 Gbit/s"] }',
            '{ "tcp.sack" = true }',
            "small.only",
        ),
        ('grid = "../grid.toml"', 'grid = "../../../grid.toml"', "grid"),
    ],
)
def test_what_the_grid_has_not_is_a_problem(
    claim: Path, old: str, new: str, where: str | None
) -> None:
    claim.write_text(CLAIM.replace(old, new))
    if where is None:  # The point has several values; one that matches is enough.
        assert load(claim).runs["small"].count == 1
        return
    with pytest.raises(ProblemsError) as raised:
        load(claim)
    assert any(where in problem["path"] for problem in raised.value.problems)


def test_points_of_several_runs_are_held_against_each_other(claim: Path, tmp_path: Path) -> None:
    (outcome,) = ew.claims("tiny/A1", jobs=0, papers=claim.parents[2], store=tmp_path / "store")
    assert outcome.verdict == "holds"
    (part,) = outcome.parts
    assert part.measured is not None and part.measured.seeds == 2
    assert [row["setting"] for row in part.measured.rows] == ["2 Gbit/s", "4 Gbit/s"]


class Table(Data):
    """Made-up points: settings and the values of two seeds."""

    def __init__(self, rows: Sequence[tuple[Mapping[str, Any], tuple[float, float]]]) -> None:
        self.rows = rows

    def samples(self, value: str, at: Any = None) -> list[Sample]:
        found = [
            Sample(settings, dict(enumerate(values, 1)))
            for settings, values in self.rows
            if all(
                settings.get(path) in (wanted if isinstance(wanted, list) else [wanted])
                for path, wanted in (at or {}).items()
            )
        ]
        if not found:
            raise MeasureError("none")
        return found


ROWS = Table(
    [
        ({"kind": "base", "depth": 1}, (10.0, 20.0)),
        ({"kind": "base", "depth": 2}, (100.0, 100.0)),
        ({"kind": "red", "depth": 1, "target": "1 ms"}, (5.0, 10.0)),
        ({"kind": "red", "depth": 2, "target": "1 ms"}, (20.0, 20.0)),
        ({"kind": "red", "depth": 1, "target": "500 us"}, (8.0, 16.0)),
        ({"kind": "red", "depth": 1, "target": "2 ms"}, (2.0, 4.0)),
    ]
)


def test_each_point_is_held_against_the_one_most_alike() -> None:
    red = {"kind": "red", "target": "1 ms"}
    assert many.mean_reduction(ROWS, "x", red, {"kind": "base"}).value == pytest.approx(0.65)
    one = many.mean_ratio(ROWS, "x", {**red, "depth": 2}, {"kind": "base", "depth": 1})
    assert one.value == pytest.approx((2.0 + 1.0) / 2)
    with pytest.raises(MeasureError, match="exactly one is needed"):
        many.mean_ratio(ROWS, "x", {"kind": "base"}, {"kind": "red"})


def test_what_is_saved_has_a_unit_and_is_paired_by_seed() -> None:
    at, against = {"kind": "red", "depth": 2}, {"kind": "base", "depth": 1}
    found = means.saved(ROWS, "x", at, against)
    assert found.value == pytest.approx((10 - 20 + 20 - 20) / 2) and found.seeds == 2
    assert means.reduction(ROWS, "x", at, against).value == pytest.approx((1 - 2 + 0) / 2)
    nothing = Table([({"kind": "none"}, (0.0, 0.0)), ({"kind": "some"}, (1.0, 1.0))])
    assert means.saved(nothing, "x", {"kind": "none"}, {"kind": "some"}).value == 1
    with pytest.raises(MeasureError, match="is 0 in all runs"):
        means.reduction(nothing, "x", {"kind": "some"}, {"kind": "none"})
    other = Sample({}, {9: 1.0})
    with pytest.raises(MeasureError, match="no seed in common"):
        means._pairs(ROWS.sample("x", at), other)


def test_another_value_of_the_other_point() -> None:
    class Two(Table):
        def samples(self, value: str, at: Any = None) -> list[Sample]:
            factor = 2.0 if value == "twice" else 1.0
            return [
                Sample(s.settings, {seed: factor * v for seed, v in s.values.items()})
                for s in super().samples(value, at)
            ]

    two = Two(ROWS.rows)
    red, base = {"kind": "red", "target": "1 ms"}, {"kind": "base"}
    assert many.mean_ratio(two, "x", red, base, of="twice").value == pytest.approx(0.35 / 2)
    assert many.mean_reduction(two, "x", red, base, "twice").value == pytest.approx(1 - 0.35 / 2)
    # Divided by itself: the ratio of the other value in the same runs.
    assert many.mean_ratio(two, "twice", base, base, of="x").value == pytest.approx(2)
    worst = many.least_reduction(two, "x", red, base, of="twice")
    best = many.best_reduction(two, "x", red, base, of="twice")
    assert worst.value == pytest.approx(0.75)
    assert best.value == pytest.approx(0.9)


def test_how_much_more_is_saved_and_what_of_it_is_one_part() -> None:
    red = {"kind": "red", "target": "1 ms"}
    shallow, deep = {**red, "depth": 1}, {**red, "depth": 2}
    more = many.reduction_difference(ROWS, "x", deep, shallow, {"kind": "base"})
    assert more.value == pytest.approx(0.8 - 0.5)

    class Parts(Table):
        def samples(self, value: str, at: Any = None) -> list[Sample]:
            part = {"part": 0.25, "x": 1.0, "same": 0.0}[value]
            return [
                Sample(s.settings, {seed: part * v for seed, v in s.values.items()})
                for s in super().samples(value, at)
            ]

    parts = Parts(ROWS.rows)
    base = {"kind": "base"}
    assert many.saved_share(parts, "part", "x", red, base).value == pytest.approx(0.25)
    with pytest.raises(MeasureError, match="equal at the points"):
        many.saved_share(parts, "part", "same", red, base)


def test_axes_of_several_settings_are_one() -> None:
    def sample(policy: str, window: str, value: float) -> Sample:
        settings = {"hold": policy, "limit": "10 MB"}
        moved = {"limit": {"window": window}, "hold": {"trigger": "1"}}
        return Sample(settings, {1: value}, {"kind": "a"}, moved)

    rows = [
        sample("0 s", "64 KB", 10.0),
        sample("0 s", "1 MB", 20.0),
        sample("1 ms", "64 KB", 5.0),
        sample("1 ms", "1 MB", 5.0),
    ]

    class Some(Data):
        def samples(self, value: str, at: Any = None) -> list[Sample]:
            return [s for s in rows if (at or {}).items() <= s.decided.items()]

    data = Some()
    found = many.mean_ratio(data, "x", {"hold": "1 ms"}, {"hold": "0 s"})
    assert found.value == pytest.approx((0.5 + 0.25) / 2)
    one = many.mean_ratio(data, "x", {"hold": "1 ms", "window": "1 MB"}, {"hold": "0 s"})
    assert one.value == pytest.approx(0.25)
    assert many.lower_share(data, "x", {"hold": "1 ms"}, {"hold": "0 s"}).text == "2 of 2"


def test_what_a_claim_asks_of_a_grid_goes_for_quick_runs_too() -> None:
    axis = [{"path": ["a", "b"], "values": [[1, 10], [2, 20]]}]
    less = [{"path": ["a", "b"], "values": [[1, 5], [2, 6]]}]
    table = {"axis": axis, "quick": {"seeds": 1, "axis": less}}
    found = grid.part(table, {"grid": "t", "only": {"a": 2}})
    assert found["axis"][0]["values"] == [[2, 20]]
    assert found["quick"]["axis"][0]["values"] == [[2, 6]]
    assert found["quick"]["seeds"] == 1
    with pytest.raises(KeyError):
        grid.part(table, {"grid": "t", "only": {"a": 3}})


def test_the_best_and_the_worst_of_many_points() -> None:
    red, base = {"kind": "red", "depth": 1}, {"kind": "base", "depth": 1}
    best = many.best_reduction(ROWS, "x", red, base)
    worst = many.least_reduction(ROWS, "x", red, base)
    assert best.value == pytest.approx(0.8)
    assert worst.value == pytest.approx(0.2)
    assert "2 ms" in best.text and "500 us" in worst.text
    kept = many.best_reduction(ROWS, "x", red, base, keeping="x", loss=0.5)
    assert "1 ms" in kept.text
    assert many.best_ratio(ROWS, "x", red, {"kind": "base"}).value == pytest.approx(0.2)


def test_order_place_and_trend() -> None:
    red = {"kind": "red", "depth": 1}
    share = many.lower_share(ROWS, "x", {"target": "1 ms"}, {"target": "500 us"})
    assert (share.value, share.text) == (1.0, "1 of 1")
    assert many.best_place(ROWS, "x", red, "target").value == pytest.approx(2e9)
    assert many.best_place(ROWS, "x", red, "target", highest=True).value == pytest.approx(5e8)
    assert many.trend(ROWS, "x", red, "target").value == pytest.approx(-1)
    with pytest.raises(MeasureError, match="trend needs at least three"):
        many.trend(ROWS, "x", {"kind": "red", "depth": 2}, "target")
