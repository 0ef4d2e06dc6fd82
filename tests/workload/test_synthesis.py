"""Synthetic traces: similar to their source, reproducible, exact when scaled."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import eastwest as ew
from eastwest import shipped
from eastwest.errors import InputError
from eastwest.traces.form import schema
from eastwest.traces.load import open_trace
from eastwest.traces.replay import LAST_SUBMIT_S
from eastwest.workload.describe import jobs_of
from eastwest.workload.jobs import BYTES, Jobs, spread
from eastwest.workload.keep import Form, as_kept, keep, quality_of
from eastwest.workload.quality import ReferenceInterval
from eastwest.workload.scale import Factor, by_load, by_size, rounded
from eastwest.workload.synthesize import Method, synthesize
from eastwest.workload.to_swim import text_of

DAY = 86_400.0


@pytest.fixture(scope="module")
def facebook() -> pl.DataFrame:
    with open_trace(shipped.traces()["fb-2009"]) as trace:
        return trace.collect(trace.jobs)


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_synthetic_day_lies_inside(facebook: pl.DataFrame, method: Method, seed: int) -> None:
    made = synthesize(facebook, DAY, method, seed=seed)
    assert made.quality.inside
    assert made.quality.drawn == 24
    assert made.jobs["submit_s"].is_sorted()
    assert float(made.jobs["submit_s"].max() or 0) < DAY  # type: ignore[arg-type]
    assert made.jobs["job"].to_list() == list(range(made.jobs.height))


def test_the_same_seed_makes_the_same_trace(facebook: pl.DataFrame) -> None:
    first = synthesize(facebook, 4 * 3600, Method.RESAMPLE, seed=7, draws=1)
    again = synthesize(facebook, 4 * 3600, Method.RESAMPLE, seed=7, draws=1)
    other = synthesize(facebook, 4 * 3600, Method.RESAMPLE, seed=8, draws=1)
    assert first.jobs.equals(again.jobs)
    assert not first.jobs.equals(other.jobs)


def test_windows_are_whole_windows_of_the_source(facebook: pl.DataFrame) -> None:
    made = synthesize(facebook, 5 * 3600, Method.WINDOWS, seed=2, draws=1).jobs
    bytes_of = ("name", *BYTES)
    source: dict[int, list[tuple[object, ...]]] = {}
    for row in facebook.select("submit_s", *bytes_of).iter_rows():
        source.setdefault(int(row[0] // 3600), []).append((row[0] % 3600, *row[1:]))
    known = [source.get(window, []) for window in range(24)]
    for window in range(5):
        inside = made.filter((pl.col("submit_s") // 3600) == window)
        rows = [(r[0] % 3600, *r[1:]) for r in inside.select("submit_s", *bytes_of).iter_rows()]
        assert rows in known


def test_resampling_keeps_distributions_and_correlations(facebook: pl.DataFrame) -> None:
    made = Jobs.of(synthesize(facebook, DAY, Method.RESAMPLE, seed=1).jobs)
    source = Jobs.of(facebook)
    ranks = [np.corrcoef([spread(jobs.known[name]) for name in BYTES]) for jobs in (source, made)]
    assert np.abs(ranks[0] - ranks[1]).max() < 0.1
    zero = [float(np.mean(jobs.known["shuffle_bytes"] == 0)) for jobs in (source, made)]
    assert zero[0] == pytest.approx(zero[1], abs=0.05)
    # The jobs are new, not copies.
    there = set(zip(*(source.known[name].tolist() for name in BYTES), strict=True))
    new = list(zip(*(made.known[name].tolist() for name in BYTES), strict=True))
    assert np.mean([job in there for job in new]) < 0.2
    for name in BYTES:
        assert made.known[name].max() <= source.known[name].max()


def test_what_else_is_known_moves_along() -> None:
    draw = np.random.default_rng(1)
    submit = np.sort(draw.random(400) * 4000)
    size = 10 ** draw.normal(8, 1, 400)
    table = pl.DataFrame(
        {
            "job": np.arange(400),
            "name": [f"j{n}" for n in range(400)],
            "submit_s": submit,
            "launch_s": submit + 1,
            "finish_s": submit + 1 + size / 1e7,
            "maps": np.ceil(size / 64e6),
            "input_bytes": size.round(),
        }
    ).cast({c: schema("jobs")[c] for c in ("job", "maps", "input_bytes")})
    for method in Method:
        made = synthesize(table, 4000, method, window_s=400, seed=1).jobs
        assert (made["launch_s"] >= made["submit_s"]).all()
        assert (made["finish_s"] >= made["launch_s"]).all()
        took = (made["finish_s"] - made["submit_s"]).to_numpy()
        together = np.corrcoef(np.log(took), np.log(made["input_bytes"].to_numpy()))[0, 1]
        assert together > 0.9
        assert made["maps"].min() == 1


def test_a_trace_of_other_jobs_lies_outside(facebook: pl.DataFrame) -> None:
    tenfold = by_size(facebook, Factor(Fraction(10)))
    quality = ReferenceInterval(Jobs.of(facebook)).measure(Jobs.of(tenfold))
    outside = {row.quantity for row in quality.rows if not row.inside}
    assert {"input", "output", "all jointly"} <= outside
    assert "gap" not in outside
    assert 0.5 < quality.own_share < 0.95


def test_a_source_too_short_is_refused(facebook: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="no whole window"):
        synthesize(facebook.head(50), DAY, window_s=7200)
    with pytest.raises(InputError, match="does not suit"):
        synthesize(facebook, 1e12)


def test_scaling_is_exact_and_rounds_halves_up(facebook: pl.DataFrame) -> None:
    scaled = by_size(facebook, Factor.of_nodes("600:20"))
    assert int(scaled["shuffle_bytes"].sum()) == 740_557_076_906
    for name in BYTES:
        expected = [(2 * size * 20 + 600) // 1200 for size in facebook[name].to_list()]
        assert scaled[name].to_list() == expected
    sizes = pl.DataFrame(
        {"input_bytes": [14, 15, 16, 44, 45, 2**64 - 1]}, schema={"input_bytes": pl.UInt64}
    )
    assert by_size(sizes, Factor(Fraction(1, 30)))["input_bytes"].to_list() == [
        0,
        1,
        1,
        1,
        2,
        (2 * (2**64 - 1) + 30) // 60,
    ]
    hard = Factor(Fraction(2**31 - 1, 2**31 - 3))
    numbers = [2**63 - 1, 2**62 + 12_345, 10**18 + 7]
    wide = pl.DataFrame({"input_bytes": numbers}, schema={"input_bytes": pl.UInt64})
    assert by_size(wide, hard)["input_bytes"].to_list() == [rounded(n, hard) for n in numbers]
    with pytest.raises(InputError, match="64 bits"):
        by_size(sizes, Factor(Fraction(2)))


def test_scaling_forgets_what_no_longer_holds(facebook: pl.DataFrame) -> None:
    table = facebook.with_columns(maps=pl.lit(3, pl.UInt32), finish_s=pl.col("submit_s") + 5)
    scaled = by_size(table, Factor.of("0.5", "--data"))
    assert scaled["maps"].null_count() == scaled.height
    assert scaled["finish_s"].null_count() == scaled.height
    assert scaled["submit_s"].equals(table["submit_s"])
    faster = by_load(table, Factor.of("2", "--load"))
    assert faster["submit_s"].to_list() == pytest.approx((table["submit_s"] / 2).to_list())
    assert (faster["finish_s"] - faster["submit_s"]).to_list() == pytest.approx([5.0] * 5894)
    assert faster["input_bytes"].equals(table["input_bytes"])


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "1e999999999", "1/0", "nan", "99999999999"])
def test_factors_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--data"):
        Factor.of(text, "--data")


@pytest.mark.parametrize("text", ["600", "0:1", "600:", "a:b", "1:2:3", "-1:2", "9" * 30 + ":1"])
def test_nodes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="600:20"):
        Factor.of_nodes(text)


def test_a_swim_trace_says_what_the_table_says(facebook: pl.DataFrame, tmp_path: Path) -> None:
    text, unknown = text_of(facebook)
    assert unknown == 0
    published = shipped.traces()["fb-2009"].read_text("utf-8").splitlines()
    ours = text.decode().splitlines()
    columns = (0, 1, 3, 4, 5)  # Jobs of the same second may be in any order.
    assert [[r.split("\t")[c] for c in columns] for r in ours] == [
        [r.split("\t")[c] for c in columns] for r in published
    ]
    names = ["a\tb\nc", None, "\x00", "ok"]
    table = pl.DataFrame(
        {"name": names, "submit_s": [0.9, 1.2, 1.4, 7.0], "input_bytes": [1, None, 3, 4]}
    )
    text, unknown = text_of(table)
    assert text.decode().splitlines() == [
        "a b c\t0\t0\t1\t0\t0",
        "job1\t1\t1\t0\t0\t0",
        "job2\t1\t0\t3\t0\t0",
        "ok\t7\t6\t4\t0\t0",
    ]
    assert unknown == 9
    with pytest.raises(InputError, match="use a shorter trace"):
        text_of(table.with_columns(submit_s=pl.lit(3e6)))
    # The last second that the simulator reads, also with decimals, which the format lacks.
    last = float(LAST_SUBMIT_S)
    assert text_of(table.with_columns(submit_s=pl.lit(last + 0.9)))
    with pytest.raises(InputError, match="up to 2,305,843 s only"):
        text_of(table.with_columns(submit_s=pl.lit(last + 1)))


SCENARIO = """
schema = 1
name = "replayed"
[fabric]
kind = "star"
hosts = 4
host_rate = "1 Gbit/s"
[[workload]]
name = "hadoop"
kind = "mapreduce"
trace = "made.tsv"
"""


def test_a_synthetic_trace_can_be_replayed(facebook: pl.DataFrame, tmp_path: Path) -> None:
    made = synthesize(facebook, 600, Method.RESAMPLE, window_s=600, seed=4, draws=1)
    small = by_size(made.jobs, Factor(Fraction(1, 10_000)))
    keep(small, tmp_path / "made.tsv", Form.SWIM, {})
    scenario = tmp_path / "replayed.toml"
    scenario.write_text(SCENARIO, "utf-8")
    result = ew.run(scenario, out=tmp_path / "out")
    assert result.jobs.height == small.height


def test_a_made_trace_is_kept_with_its_distances(facebook: pl.DataFrame, tmp_path: Path) -> None:
    made = synthesize(facebook, 6 * 3600, seed=1, draws=2)
    about = {
        "source": "synthetic",
        "synthesized": {"length_s": made.length_s, "seed": 1},
        "quality": as_kept(made.quality),
    }
    keep(made.jobs, tmp_path / "made", Form.NORMAL, about)
    with open_trace(tmp_path / "made") as trace:
        assert quality_of(trace.about) == made.quality
        jobs = jobs_of(trace)
        assert jobs.length_s == 6 * 3600
        assert jobs.submit_s.tolist() == made.jobs["submit_s"].to_list()
    spoilt: list[Any] = [None, [], {"rows": 3}, {**as_kept(made.quality), "windows": "x"}]
    for damaged in spoilt:
        assert quality_of({"quality": damaged}) is None
