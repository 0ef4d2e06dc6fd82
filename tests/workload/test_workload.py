"""Analysis of traces, compared with closed forms and with known facts of the Facebook day."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from eastwest import shipped
from eastwest.errors import InputError
from eastwest.traces.load import open_trace
from eastwest.workload.access import access, cumulative
from eastwest.workload.arrival import arrival, autocorrelation, bursts
from eastwest.workload.distance import Cut, Energy, Marginal
from eastwest.workload.hurst import fractional_noise, hurst
from eastwest.workload.jobs import Floats, Jobs, spread
from eastwest.workload.shapes import shapes, word
from eastwest.workload.tasks import durations


def random(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def made(submit: Floats, **known: Floats) -> Jobs:
    return Jobs(np.asarray(submit, dtype=np.float64), known)


@pytest.fixture(scope="module")
def facebook() -> pl.DataFrame:
    with open_trace(shipped.traces()["fb-2009"]) as trace:
        return trace.collect(trace.jobs)


def test_jobs_are_read_with_what_is_known_of_them() -> None:
    table = pl.DataFrame(
        {
            "submit_s": [5.0, 1.0, None, float("nan"), -3.0],
            "launch_s": [7.0, 0.5, 1.0, 1.0, 1.0],
            "finish_s": [9.0, 4.0, 1.0, 1.0, 1.0],
            "input_bytes": [10, None, 1, 1, 1],
            "shuffle_bytes": [None, None, 1, 1, 1],
        },
        schema_overrides={"input_bytes": pl.UInt64, "shuffle_bytes": pl.UInt64},
    )
    jobs = Jobs.of(table)
    assert jobs.submit_s.tolist() == [1.0, 5.0]
    assert set(jobs.known) == {"input_bytes", "wait_s", "run_s"}
    assert np.isnan(jobs.known["input_bytes"][0])
    # A launch before its submission means that a clock was set back.
    assert np.isnan(jobs.known["wait_s"][0])
    assert jobs.known["wait_s"][1] == 2.0
    assert jobs.known["run_s"].tolist() == [3.0, 4.0]
    assert jobs.moved_bytes.tolist() == [0.0, 10.0]
    with pytest.raises(InputError, match="no jobs"):
        Jobs.of(table.filter(pl.col("submit_s").is_null()))


def test_the_last_window_counts_where_jobs_come_near_its_end() -> None:
    assert made(np.array([0.0, 10.0, 29.0])).windows(10.0) == 3
    assert made(np.array([0.0, 10.0, 28.9])).windows(10.0) == 2
    assert Jobs(np.array([0.0, 10.0]), {}, 40.0).windows(10.0) == 4
    with pytest.raises(InputError, match="do not suit"):
        made(np.array([0.0, 1.0])).windows(0.0)


def test_gaps_are_counted_within_windows() -> None:
    jobs = made(np.array([1.0, 3.0, 12.0, 25.0]))
    assert jobs.gaps(10.0).tolist() == [1.0, 2.0, 2.0, 5.0]


def test_facebook_says_what_is_published(facebook: pl.DataFrame) -> None:
    jobs = Jobs.of(facebook)
    found = access(jobs)
    assert len(jobs) == 5894
    assert jobs.windows(3600.0) == 24
    under = {size: (round(ten, 2), round(two, 2)) for size, ten, two in found.under}
    assert under["1 GB"] == (0.70, 0.79)
    assert found.empty == 33
    assert round(found.map_only_share or 0.0, 2) == 0.75
    assert found.sizes["shuffle_bytes"].total == pytest.approx(22.217e12, rel=1e-4)
    assert found.files is None


def test_a_cumulative_curve_holds_every_value_or_its_neighbours() -> None:
    values, shares = cumulative(np.array([3.0, 1.0, 1.0, 2.0]))
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert shares.tolist() == [0.5, 0.75, 1.0]
    many = random().random(50_000)
    values, shares = cumulative(many)
    assert values.size <= 800
    assert values[-1] == many.max()
    assert np.abs(shares - values).max() < 0.01


def test_files_are_ranked_and_used_again() -> None:
    table = pl.LazyFrame({"job": [0, 1, 2, 3], "submit_s": [0.0, 10.0, 30.0, 60.0]})
    files = pl.LazyFrame(
        {
            "job": [0, 0, 1, 2, 3],
            "path": ["/a", "/b", "/b", "/a", "/a"],
            "access": ["read", "write", "read", "read", "read"],
        }
    )
    found = access(made(np.array([0.0, 10.0, 30.0, 60.0])), files, table).files
    assert found is not None
    assert (found.files, found.accesses) == (2, 5)
    assert found.reread_share == 0.75
    assert found.again["read again"][0].tolist() == [30.0]
    assert found.again["read after written"][0].tolist() == [10.0]


def test_zipf_is_found() -> None:
    uses = np.maximum(1, np.round(3000 * np.arange(1, 101) ** -0.8)).astype(int)
    paths = np.repeat(np.arange(100), uses)
    files = pl.LazyFrame(
        {"job": np.zeros(paths.size, int), "path": paths.astype(str), "access": "read"}
    )
    found = access(made(np.zeros(1)), files, pl.LazyFrame({"job": [0], "submit_s": [0.0]})).files
    assert found is not None
    assert found.zipf == pytest.approx(0.8, abs=0.02)


def test_shapes_are_found_and_the_same_each_time() -> None:
    draw = random()
    small, large = 10 ** draw.normal(4, 0.2, (300, 3)), 10 ** draw.normal(9, 0.2, (100, 3))
    values = np.concatenate([small, large])
    values[:300, 1] = 0.0
    names = ("input_bytes", "shuffle_bytes", "output_bytes")
    columns = dict(zip(names, values.T, strict=True))
    jobs = made(np.arange(400.0), **columns)
    found = shapes(jobs, seed=3)
    assert [shape.jobs for shape in found.shapes] == [300, 100]
    assert [shape.word for shape in found.shapes] == ["tiny transform, map only", "large transform"]
    assert found.shapes[1].bytes_share > 0.99
    again = shapes(jobs, seed=3)
    assert [s.median for s in again.shapes] == [s.median for s in found.shapes]
    columns["input_bytes"][:50] = np.nan
    lacking = shapes(made(np.arange(400.0), **columns), seed=3)
    assert lacking.dimensions == names[1:]


def test_shapes_of_jobs_all_alike_are_one() -> None:
    found = shapes(made(np.arange(9.0), input_bytes=np.full(9, 5.0)))
    assert [shape.jobs for shape in found.shapes] == [9]
    assert shapes(made(np.arange(9.0))).shapes == ()
    few = shapes(made(np.arange(9.0), input_bytes=10 ** np.arange(9.0)))
    assert [shape.jobs for shape in few.shapes] == [9]


def test_shapes_have_words() -> None:
    sizes = {"input_bytes": 5e12, "shuffle_bytes": 1e9, "output_bytes": 1e6}
    assert word(sizes) == "huge aggregate"
    assert word({"input_bytes": 1.0, "shuffle_bytes": 0.0, "output_bytes": 100.0}) == (
        "tiny expand, map only"
    )
    assert word(dict.fromkeys(sizes, 0.0)) == "nothing"


def test_bursts_are_peak_over_median() -> None:
    every = np.arange(0, 1000, 1.0)
    jobs = made(np.sort(np.concatenate([every, np.full(50, 505.0), [1000.0]])))
    burst = next(b for b in bursts(jobs) if b.interval_s == 10.0)
    assert (burst.intervals, burst.median, burst.peak, burst.ratio) == (100, 10.0, 60.0, 6.0)


def test_a_period_is_found_where_there_is_one_only() -> None:
    draw = random(5)
    hourly = [np.arange(0, 200_000, 3600.0) + draw.random(56) * 30 for _ in range(20)]
    noise = draw.random(3000) * 200_000
    found = arrival(made(np.sort(np.concatenate([*hourly, noise]))))
    assert found.period is not None
    assert found.period.period_s == pytest.approx(3600, rel=0.01)
    none = arrival(made(np.sort(noise)))
    assert none.period is None
    assert "No period" in none.period_word
    assert "too short to show daily periods" in none.period_word


def test_autocorrelation_is_that_of_the_definition() -> None:
    series = random().random(50)
    away = series - series.mean()
    direct = [float(away[: 50 - k] @ away[k:]) / float(away @ away) for k in range(50)]
    assert autocorrelation(series) == pytest.approx(np.array(direct))


@pytest.mark.parametrize("h", [0.5, 0.7, 0.85])
def test_hurst_of_fractional_noise_lies_in_its_interval(h: float) -> None:
    noise = fractional_noise(h, 4096, 1, random(2))[0]
    assert noise.std() == pytest.approx(1, abs=0.35)
    for estimate in hurst(noise):
        assert estimate.low <= h <= estimate.high, estimate
        assert estimate.high - estimate.low < 0.25


def test_fractional_noise_has_its_covariance() -> None:
    noise = fractional_noise(0.8, 64, 4000, random(3))
    lag_one = float((noise[:, :-1] * noise[:, 1:]).mean())
    assert lag_one == pytest.approx((2**1.6 - 2) / 2, abs=0.03)


def test_a_short_trace_says_that_it_is_short() -> None:
    found = arrival(made(np.sort(random().random(200) * 5000)))
    assert found.hurst == ()
    assert "too short for an estimate" in found.hurst_word
    alone = arrival(made(np.array([3.0]), input_bytes=np.array([1.0])))
    assert alone.jobs == 1
    assert alone.counts.sum() == 1


def test_distances_are_those_of_scipy() -> None:
    draw = random()
    first, second = 10 ** draw.normal(5, 1, 400), 10 ** draw.normal(5.5, 2, 300)
    one = Cut.of(Jobs(np.linspace(0, 99, 400), {"input_bytes": first}, 100.0), 10.0)
    two = Cut.of(Jobs(np.linspace(0, 99, 300), {"input_bytes": second}, 100.0), 10.0)
    ks, wasserstein = Marginal.of("input_bytes", one, two).to_second()
    assert ks == pytest.approx(stats.ks_2samp(first, second).statistic)
    assert wasserstein == pytest.approx(stats.wasserstein_distance(spread(first), spread(second)))
    energy = Energy.of(["input_bytes"], one, two).to_second()
    scale = spread(first).std()
    root = stats.energy_distance(spread(first) / scale, spread(second) / scale)
    assert energy == pytest.approx(root**2)


def test_a_trace_lies_nowhere_from_itself_and_somewhere_from_others() -> None:
    values = 10 ** random().normal(5, 1, (200, 2))
    times = np.linspace(0, 99, 200)

    def cut(shift: float, mixed: bool = False) -> Cut:
        second = values[::-1, 0] if mixed else values[:, 0]
        known = {"input_bytes": values[:, 0] * shift, "output_bytes": second * shift}
        return Cut.of(Jobs(times, known, 100.0), 10.0)

    names = ["input_bytes", "output_bytes"]
    assert Marginal.of("input_bytes", cut(1), cut(1)).to_second() == (0.0, 0.0)
    assert Energy.of(names, cut(1), cut(1)).to_second() == pytest.approx(0, abs=1e-9)
    assert Energy.of(names, cut(1), cut(2)).to_second() > 0.01
    # The distributions are equal, but the quantities are no longer correlated.
    assert Marginal.of("output_bytes", cut(1), cut(1, True)).to_second() == (0.0, 0.0)
    assert Energy.of(names, cut(1), cut(1, True)).to_second() > 0.05
    _, wasserstein = Marginal.of("input_bytes", cut(1), cut(10)).to_second()
    assert wasserstein == pytest.approx(1.0, abs=1e-3)


def test_a_resample_is_as_far_as_the_jobs_it_stands_for() -> None:
    draw = random(4)
    values, times = 10 ** draw.normal(5, 1, 120), np.sort(draw.random(120) * 40)
    cut = Cut.of(Jobs(times, {"input_bytes": values}, 40.0), 10.0)
    weights = np.array([[2.0, 0.0, 1.0, 1.0]])
    chosen = np.concatenate([values[cut.window == k] for k in (0, 0, 2, 3)])
    again = Cut.of(Jobs(np.linspace(0, 39, chosen.size), {"input_bytes": chosen}, 40.0), 10.0)
    marginal = Marginal.of("input_bytes", cut, again)
    ks, wasserstein = marginal.to_resamples(weights)
    assert (ks[0], wasserstein[0]) == pytest.approx(marginal.to_second())
    energy = Energy.of(["input_bytes"], cut, again)
    assert energy.to_resamples(weights)[0] == pytest.approx(energy.to_second())


def test_windows_that_do_not_suit_are_refused() -> None:
    with pytest.raises(InputError, match="no whole window"):
        Cut.of(made(np.array([1.0, 2.0])), 3600.0)
    with pytest.raises(InputError, match="use longer"):
        Cut.of(made(np.arange(20_000.0)), 1.0)


def test_task_times_by_kind() -> None:
    attempts = pl.LazyFrame(
        {
            "job": [0] * 6,
            "kind": ["map"] * 5 + [None],
            "outcome": ["succeeded"] * 4 + ["failed", "succeeded"],
            "start_s": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            "finish_s": [10.0, 10.0, 12.0, 30.0, 99.0, 5.0],
        }
    )
    found = durations(attempts)
    assert list(found) == ["map"]
    assert (found["map"].attempts, found["map"].succeeded) == (5, 4)
    assert found["map"].seconds["most"] == 30.0
    assert found["map"].slow_share == 0.25
