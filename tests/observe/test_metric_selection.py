"""Metric selection, compared with a second implementation; and refused inputs.

The second implementation below follows the equations in plain Python, by brute force. Nearest
neighbours are compared with scikit-learn.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from eastwest import spreadsheet
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.observe import actuation, stability
from eastwest.observe.information import (
    Discretised,
    Neighbours,
    average_ranks,
    classes,
    shared_classes,
)
from eastwest.observe.metrics import Metrics, joined, read
from eastwest.observe.mrmr import Scheme
from eastwest.observe.prometheus import rated
from eastwest.observe.select import Merged, Method, Wanted, select
from project_paths import DATA

NEZHA = DATA / "nezha" / "metrics.csv.gz"


def table(rows: int, columns: int, seed: int) -> Metrics:
    """Return metrics that share information with the target ``t`` and among each other."""
    random = np.random.default_rng(seed)
    target = random.normal(size=rows)
    values = [target]
    for column in range(columns):
        share = column / columns
        other = values[int(random.integers(0, len(values)))]
        mixed = share * target + (1 - share) * other + random.normal(size=rows)
        values.append(np.round(mixed, 1) if column % 3 == 0 else mixed)
    names = ("t", *(f"m{column}" for column in range(columns)))
    return Metrics(names, np.column_stack(values))


# The second implementation.


def brute_classes(values: list[float], bins: int) -> list[int]:
    """Return the class of each value, by counting.

    It is the value's index if values are few, or else ⌈mean rank · bins / n⌉.
    """
    n, found = len(values), []
    if len(set(values)) <= bins:
        return [sum(other <= value for other in set(values)) for value in values]
    for value in values:
        below = sum(other < value for other in values)
        equal = sum(other == value for other in values)
        rank = Fraction(2 * below + equal + 1, 2)
        found.append(math.ceil(rank * bins / n))
    return found


def brute_information(first: list[int], second: list[int]) -> float:
    """Return the mutual information Σ p(x, y) ln(p(x, y) / p(x) p(y))."""
    n = len(first)
    both, one, other = Counter(zip(first, second, strict=True)), Counter(first), Counter(second)
    return sum(c / n * math.log(c * n / (one[x] * other[y])) for (x, y), c in both.items())


def brute_selection(
    metrics: Metrics, count: int, scheme: str, bins: int
) -> list[tuple[str, float]]:
    """Return names and scores; every score of every candidate is computed anew in every step."""
    cut = {
        name: brute_classes(column.tolist(), bins)
        for name, column in zip(metrics.names, metrics.values.T, strict=True)
    }
    relevance = {n: brute_information(cut[n], cut["t"]) for n in metrics.names if n != "t"}
    chosen: list[tuple[str, float]] = []
    for _ in range(count):
        scores = {}
        for name, told in relevance.items():
            if name in dict(chosen):
                continue
            shared = [brute_information(cut[name], cut[other]) for other, _ in chosen]
            mean = sum(shared) / len(shared) if shared else 0
            if not shared:
                scores[name] = told
            elif scheme == "difference":
                scores[name] = told - mean
            else:
                scores[name] = told / mean
        best = max(scores, key=lambda name: scores[name])
        chosen.append((best, scores[best]))
    return chosen


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("seed", range(4))
def test_selection_is_that_of_brute_force(scheme: Scheme, seed: int) -> None:
    metrics = table(120, 14, seed)
    found = select(metrics, "t", Wanted(count=9, scheme=scheme, bins=4))
    expected = brute_selection(metrics, 9, scheme.value, 4)
    assert [each.metric for each in found.chosen] == [name for name, _ in expected]
    assert [each.score for each in found.chosen] == pytest.approx([s for _, s in expected])


@pytest.mark.parametrize("scheme", list(Scheme))
def test_selection_by_neighbours_is_that_of_scikit_learn(scheme: Scheme) -> None:
    from sklearn.feature_selection import mutual_info_regression  # noqa: PLC0415  slow to load

    metrics = table(150, 8, 7)
    columns, target = metrics.values[:, 1:], metrics.values[:, 0]
    relevance = mutual_info_regression(columns, target, random_state=1)
    shared = np.array(
        [mutual_info_regression(columns, other, random_state=1) for other in columns.T]
    )
    chosen: list[int] = []
    for _ in range(5):
        left = [i for i in range(8) if i not in chosen]
        mean = shared[chosen].mean(axis=0) if chosen else np.zeros(8)
        score = relevance - mean
        if scheme is Scheme.QUOTIENT and chosen:
            score = relevance / np.maximum(mean, 1e-300)
        chosen.append(max(left, key=lambda i: score[i]))
    found = select(metrics, "t", Wanted(count=5, scheme=scheme, method=Method.NEIGHBOURS))
    assert [each.metric for each in found.chosen] == [f"m{i}" for i in chosen]


def test_what_stands_beside_a_column_does_not_change_its_neighbours() -> None:
    random = np.random.default_rng(2)
    values = np.floor(random.normal(size=(200, 4)) * 3)  # Rounding makes ties, so noise decides.
    names = ["a", "b", "c", "d"]
    whole = Neighbours(values, 3, 1, names)
    some = Neighbours(values[:, [3, 1]], 3, 1, ["d", "b"])
    assert some.between(0, 1) == whole.between(3, 1)
    assert some.against(0, whole.column(1)) == whole.between(3, 1)
    assert Neighbours(values, 3, 2, names).between(3, 1) != whole.between(3, 1)
    with pytest.raises(
        InputError, match="50 nearest neighbours need more than 50 rows, but there are 20"
    ):
        few = Metrics(("x", "t"), random.normal(size=(20, 2)))
        select(few, "t", Wanted(method=Method.NEIGHBOURS, neighbours=50))


@pytest.mark.parametrize("neighbours", [1, 3, 10])
def test_information_by_neighbours_is_that_of_scikit_learn(neighbours: int) -> None:
    from sklearn.feature_selection import mutual_info_regression  # noqa: PLC0415

    random = np.random.default_rng(3)
    x = random.normal(size=400)
    pairs = [(x, x + random.normal(size=400)), (x, x**2), (1e6 + x, random.normal(size=400))]
    for first, second in pairs:
        ours = Neighbours(np.column_stack((first, second)), neighbours, 1).between(0, 1)
        theirs = mutual_info_regression(
            first[:, None], second, n_neighbors=neighbours, random_state=1
        )[0]
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_information_of_known_pairs() -> None:
    random = np.random.default_rng(5)
    x, noise = random.normal(size=5000), random.normal(size=5000)
    for correlation in (0.0, 0.6, 0.9):
        y = correlation * x + math.sqrt(1 - correlation**2) * noise
        exact = -0.5 * math.log(1 - correlation**2)
        both = np.column_stack((x, y))
        assert Neighbours(both, 3, 1).between(0, 1) == pytest.approx(exact, abs=0.04)
        # Ten classes cannot tell all values apart.
        assert Discretised(both, 10).between(0, 1) == pytest.approx(exact, abs=0.1)
    assert Discretised(np.column_stack((x, x)), 10).between(0, 1) == pytest.approx(math.log(10))


def test_classes_are_of_equal_frequency_by_average_rank() -> None:
    assert average_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]
    random = np.random.default_rng(2)
    assert np.bincount(classes(random.normal(size=100), 10)).tolist() == [10] * 10
    tied = random.integers(0, 4, size=50).astype(float)
    for bins in (2, 3, 5):
        assert [c + 1 for c in classes(tied, bins).tolist()] == brute_classes(tied.tolist(), bins)


def test_few_values_keep_a_class_each() -> None:
    """Shares of 10, 10 and 80 % were two classes of three: 0.3 and 0.6 of a class are one."""
    states = np.repeat([1.0, 2.0, 3.0], [10, 10, 80])
    assert np.bincount(classes(states, 3)).tolist() == [10, 10, 80]
    assert np.bincount(classes(states[:20], 10)).tolist() == [10, 10]
    assert shared_classes(states, 3) is None
    assert shared_classes(np.concatenate((states, np.full(900, 4.0))), 3) == (4, 2)
    same = select(Metrics(("t", "s"), np.column_stack((5 * states, states))), "t", Wanted(bins=3))
    exact = -(0.2 * math.log(0.1) + 0.8 * math.log(0.8))
    assert same.relevance["s"] == pytest.approx(exact)


def test_values_that_share_a_class_are_said(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    mostly = np.where(np.arange(200) < 190, 0.0, np.arange(200))
    table = np.column_stack((random.normal(size=200), mostly, random.normal(size=200)))
    metrics = Metrics(("t", "mostly", "m"), table)
    found = select(metrics, "t", Wanted(bins=4))
    # 190 zeros have the mean rank 95.5; the third of four classes begins behind rank 100.
    assert found.merged == (Merged("mostly", 11, 2),)
    assert found.as_json()["merged"] == [{"metric": "mostly", "values": 11, "classes": 2}]
    assert select(metrics, "t", Wanted(method=Method.NEIGHBOURS)).merged == ()
    path = tmp_path / "m.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([metrics.names, *table.tolist()])
    shown = CliRunner().invoke(
        app, ["observe", "select", str(path), "--target", "t", "--bins", "4"]
    )
    said = " ".join(shown.stdout.split())
    assert "share a class because of ties in 1 metrics (mostly: 11 values in 2" in said


def test_a_copy_adds_nothing_and_a_second_cause_does() -> None:
    random = np.random.default_rng(9)
    one, two = random.normal(size=2000), random.normal(size=2000)
    target = 2 * one + two + 0.1 * random.normal(size=2000)
    columns = np.column_stack((target, one, one + 1e-6 * two, two, random.normal(size=2000)))
    metrics = Metrics(("t", "one", "copy of one", "two", "noise"), columns)
    for method in Method:
        found = select(metrics, "t", Wanted(count=2, method=method))
        assert [each.metric for each in found.chosen] == ["one", "two"]


def test_lags_are_found() -> None:
    random = np.random.default_rng(4)
    cause = random.normal(size=500)
    target = np.concatenate((random.normal(size=7), cause[:-7])) + 0.2 * random.normal(size=500)
    columns = np.column_stack((target, cause, np.roll(cause, 3), random.normal(size=500)))
    metrics = Metrics(("t", "7 before", "4 before", "noise"), columns)
    found = select(metrics, "t", Wanted(count=3, lags=10))
    lags = {each.metric: each.lag for each in found.chosen}
    assert lags["7 before"] == 7 and lags["4 before"] == 4 and found.rows == 490
    assert found.relevance["7 before"] > 1
    without = select(metrics, "t", Wanted(count=3))
    assert without.relevance["7 before"] < 0.3 and {each.lag for each in without.chosen} == {0}


def test_the_bootstrap_tells_sure_picks_from_chance() -> None:
    metrics = table(300, 10, 1)
    found = select(metrics, "t", Wanted(count=3, bootstrap=30))
    again = select(metrics, "t", Wanted(count=3, bootstrap=30))
    assert found == again and found.stability is not None and 0 < found.stability <= 1
    often = [each.frequency or 0 for each in found.chosen]
    assert often[0] > 0.7 and often[0] > often[-1]
    by_neighbours = Wanted(count=3, bootstrap=5, method=Method.NEIGHBOURS)
    assert select(metrics, "t", by_neighbours).chosen[0].frequency is not None


def test_stability_is_that_of_the_estimator() -> None:
    # Nogueira et al. 2018: equal selections give 1; random selections give 0 on average.
    same = stability.frequencies(6, 10, lambda _: [0, 1])
    assert same == ([1.0, 1.0, 0.0, 0.0, 0.0, 0.0], 1.0)
    # Two disjoint selections of one out of two: variance 1/2 each, divided by 1/4.
    assert stability.frequencies(2, 2, lambda replicate: [replicate]) == ([0.5, 0.5], -1.0)
    random = np.random.default_rng(0)
    _, chance = stability.frequencies(
        20, 3000, lambda _: random.choice(20, 5, replace=False).tolist()
    )
    assert chance == pytest.approx(0, abs=0.01)
    rows = stability.resampled(100, 5, 1, 0)
    assert len(rows) == 100 and set(np.diff(rows.reshape(20, 5), axis=1).ravel().tolist()) == {1}


def test_what_cannot_be_selected_is_said() -> None:
    metrics = table(60, 3, 1)
    holes = metrics.values.copy()
    holes[:30, 1] = np.nan
    holes[5, 2] = np.nan
    holes[:, 3] = 4.0
    found = select(Metrics(metrics.names, holes), "t", Wanted(count=5))
    assert found.missing == ("m0",) and found.constant == ("m2",) and found.filled == 1
    assert [each.metric for each in found.chosen] == ["m1"]
    assert select(Metrics(metrics.names, holes), "t", Wanted(most_missing=0.5)).missing == ()
    holes[:, 0] = 1.0
    for target, wanted, said in (
        ("t", Wanted(), "is constant"),
        ("T", Wanted(), "did you mean t"),
        ("m1", Wanted(exclude=("x*",)), "matches no metric"),
        ("m1", Wanted(exclude=("m0",)), "no metric is left"),
    ):
        with pytest.raises(InputError, match=said):
            select(Metrics(metrics.names, holes), target, wanted)
    with pytest.raises(InputError, match="20 are needed"):
        select(metrics, "t", Wanted(lags=50))
    with pytest.raises(InputError, match="bins: must be from 2 to 100"):
        Wanted(bins=1)
    with pytest.raises(InputError, match="same name"):
        Metrics(("a", "a"), np.zeros((3, 2)))


def test_series_of_unequal_length_are_joined_by_time() -> None:
    found = joined({"a": ([1.0, 2.0, 3.0], [1.0, 2.0, math.inf]), "b": ([3.0, 1.0], [9.0, 7.0])})
    assert found.times_s is not None and found.times_s.tolist() == [1, 2, 3]
    assert np.array_equal(
        found.values, np.array([[1, 7], [2, math.nan], [math.nan, 9]]), equal_nan=True
    )
    with pytest.raises(InputError, match="unequal length"):
        joined({"a": ([1.0, 2.0], [1.0])})
    with pytest.raises(InputError, match="unequal length"):
        Metrics(("a",), np.zeros((3, 1)), np.zeros(2))


def test_files_are_read(tmp_path: Path) -> None:
    text = "Time,a,b,note\n2026-01-01T00:00:10,2,,x\n2026-01-01T00:00:00,1,5,y\n"
    plain, packed, parquet = (tmp_path / n for n in ("m.csv", "m.csv.gz", "m.parquet"))
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    pl.DataFrame(
        {"time_s": [1767225600.0, 1767225610.0], "a": [1, 2], "b": [5, None]}
    ).write_parquet(parquet)
    for path in (plain, packed, parquet):
        found = read(path)
        assert found.names == ("a", "b")
        assert found.times_s is not None and found.times_s.tolist() == [1767225600, 1767225610]
        assert np.array_equal(found.values, np.array([[1, 5], [2, math.nan]]), equal_nan=True)
    assert read(plain, "Time").names == ("a", "b")
    for content, said in (
        ("a,b\n1,2,3\n", "not a table"),
        ("", "not a table"),
        ("note\nx\n", "has no metrics"),
        ("time,a\nsoon,1\n", "times must be"),
    ):
        plain.write_text(content)
        with pytest.raises(InputError, match=said):
            read(plain)
    with pytest.raises(InputError, match="did you mean time_s"):
        read(parquet, "times")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.csv")


def test_the_command_selects_from_a_hostile_file(tmp_path: Path) -> None:
    metrics = table(200, 6, 1)
    names = [
        "t",
        "[red]m0[/red]",
        "<script>alert(1)</script>",
        "m2\x1b[31m",
        "$\\alpha$",
        "=1+1",
        "ß",
    ]
    source, out, plot = tmp_path / "m.csv", tmp_path / "o.csv", tmp_path / "o.svg"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows([names, *metrics.values.tolist()])
    arguments = ["observe", "select", str(source), "--target", "t", "--lags", "2"]
    shown = CliRunner().invoke(
        app, [*arguments, "--csv", str(out), "--plot", str(plot), "--bootstrap", "3"]
    )
    assert shown.exit_code == 0, shown.output
    assert "[red]m0[/red]" in shown.stdout and "\x1b" not in shown.stdout
    drawn = {element.tag.rpartition("}")[2] for element in ElementTree.parse(plot).iter()}
    assert "script" not in drawn
    written = out.read_text().splitlines()
    rows = list(csv.DictReader(written))
    assert {spreadsheet.plain(row["metric"]) for row in rows} == {*names[1:]}
    assert "'=1+1" in {row["metric"] for row in rows}
    same = CliRunner().invoke(app, [*arguments, "--json", "--scheme", "quotient"])
    assert {each["metric"] for each in json.loads(same.stdout)["chosen"]} == {*names[1:]}
    for wrong, said in (
        (["--scheme", "quotent"], "did you mean quotient"),
        (["--method", "both"], "expected discretised"),
        (["--count", "0"], "count: must be"),
        (["--plot", "x.doc"], "the name of a picture"),
        (["--until", "noon"], "must be a time"),
    ):
        refused = CliRunner().invoke(app, [*arguments, *wrong])
        assert refused.exit_code == 2 and said in refused.output, refused.output


def test_real_metrics_need_their_exclusion_list() -> None:
    metrics, target = read(NEZHA), "slo.LatencyP99"
    trap = "frontend.PodServerLatencyP99(s)"
    naive = select(metrics, target, Wanted(count=3))
    assert naive.chosen[0].metric == trap and trap in naive.notes[0]
    found = select(metrics, target, Wanted(count=10, exclude=(trap,)))
    assert trap not in {each.metric for each in found.chosen} and not found.notes
    assert found.rows == 1184 and "checkoutservice.PodSuccessRate(%)" in found.constant
    assert found.chosen[0].metric.startswith("frontend.PodServerLatency")


def test_times_as_go_prints_them_are_times(tmp_path: Path) -> None:
    path = tmp_path / "pod.csv"
    path.write_text(
        "Time,PodName,CpuUsage(m)\n"
        "2022-08-22 03:51:19.607158889 +0000 UTC m=+0.113112869,adservice,1.5\n"
        "2022-08-22 03:52:19.5893 +0000 UTC m=+60.095282755,adservice,2.5\n"
        "2022-08-22 03:53:19 +0000 UTC,adservice,0.5\n"
    )
    table = read(path)
    assert table.names == ("CpuUsage(m)",) and table.times_s is not None
    assert table.times_s == pytest.approx([1661140279.607158, 1661140339.5893, 1661140399.0])


def test_columns_that_are_left_out_are_said(tmp_path: Path) -> None:
    rows = "".join(f"{n},{n * 7 % 11},{'N/A' if n == 5 else n},pod,inf\n" for n in range(30))
    path = tmp_path / "m.csv"
    path.write_text("time,t,broken,label,up\n" + rows.replace("inf", "1", 29))
    found = read(path)
    assert found.names == ("t", "up")
    assert found.notes == (
        "2 columns are not numbers and are left out: broken has 'N/A', label has 'pod'",
        "1 infinite values in 1 metrics, such as up, count as missing",
    )
    path.write_text("time,t,m\n" + "".join(f"{n},{n * 7 % 11},{n}\n" for n in range(30)))
    assert read(path).notes == ()
    assert select(read(path), "t").notes == ()


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("time,cpu,cpu\n1,2,3\n2,3,4\n")
    with pytest.raises(InputError, match="has the column 'cpu' twice"):
        read(path)
    path.write_text("time,cpu\nNaN,2\n2,3\n")
    with pytest.raises(InputError, match="a row has no time; every row needs one"):
        read(path)
    pl.DataFrame({"time": [1.0, math.nan], "cpu": [1.0, 2.0]}).write_parquet(tmp_path / "m.parquet")
    with pytest.raises(InputError, match="the time of a row is not a finite number"):
        read(tmp_path / "m.parquet")


def test_rows_that_are_not_evenly_spaced_are_said() -> None:
    random = np.random.default_rng(1)
    times = np.concatenate((np.arange(30.0), [29.0], np.arange(90.0, 120.0)))
    metrics = Metrics(("t", "m"), random.normal(size=(61, 2)), np.sort(times))
    assert select(metrics, "t").notes == (
        "1 rows have the same time as the row before: all rows are used",
    )
    lagged = select(metrics, "t", Wanted(lags=2)).notes
    assert "2 of 60 steps between rows differ from the usual 1 s: a lag is" in lagged[1]


def test_resets_and_counters_are_said() -> None:
    counted = np.array([[1.0, 5], [4, 5], [2, 6], [3, 7]])
    metrics = Metrics(("requests_total", "temperature"), counted, np.arange(4.0), ("before",))
    found = rated(metrics)
    assert found.values.tolist() == [[3, 5], [2, 6], [1, 7]]
    assert found.notes[0] == "before"
    assert found.notes[1].startswith("1 metrics are counters by their names")
    assert (
        "1 values of these counters are below the previous value: the counter was reset there"
        in found.notes[2]
    )


def test_selected_metrics_are_sorted_into_controllable_and_not(tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    cause = random.normal(size=(3, 200))
    names = ("tps", "web_cpu_seconds_total{pod=0}", "node_network_bytes", "Heap[old]", "other")
    columns = [cause.sum(axis=0), *cause, random.normal(size=200)]
    frame = pl.DataFrame(dict(zip(names, columns, strict=True)))
    frame.write_csv(tmp_path / "m.csv")
    (tmp_path / "rules.toml").write_text(
        '[[rule]]\nmetric = ["*heap*"]\ncontrollable = true\nactuation = "[bold]collect"\n'
        '[[rule]]\nmetric = "*cpu*{*pod=1*"\ncontrollable = false\nactuation = "none"\n'
    )
    wanted = ["observe", "select", str(tmp_path / "m.csv"), "--target", "tps", "--count", "4"]

    def found(table: str) -> dict[str, tuple[str, str]]:
        done = CliRunner().invoke(app, [*wanted, "--actuations", table, "--json"])
        assert done.exit_code == 0, done.output
        chosen = json.loads(done.stdout)["chosen"]
        return {each["metric"]: (each["class"], each["actuation"]) for each in chosen}

    built_in, own = found("built-in"), found(str(tmp_path / "rules.toml"))
    add = ("controllable", "add servers at run time")
    assert built_in["web_cpu_seconds_total{pod=0}"] == own["web_cpu_seconds_total{pod=0}"] == add
    assert built_in["node_network_bytes"][0] == own["node_network_bytes"][0] == "not controllable"
    assert built_in["Heap[old]"] == built_in["other"] == ("unknown", "")
    assert own["Heap[old]"] == ("controllable", "[bold]collect")
    shown = CliRunner().invoke(
        app,
        [*wanted, "--actuations", str(tmp_path / "rules.toml"), "--csv", str(tmp_path / "s.csv")],
    )
    assert shown.exit_code == 0 and "[bold]collect" in shown.stdout
    with (tmp_path / "s.csv").open() as file:
        assert {row["class"] for row in csv.DictReader(file)} == {
            "controllable", "not controllable", "unknown",
        }  # fmt: skip
    plain = CliRunner().invoke(app, [*wanted, "--json"])
    assert "class" not in json.loads(plain.stdout)["chosen"][0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rule = 1", "must contain one or more tables"),
        ("[[rule]]\nmetric = 'a'\n", "the keys metric, controllable and actuation"),
        (
            "[[rule]]\nmetric = []\ncontrollable = true\nactuation = ''\n",
            "metric must be a name, a glob",
        ),
        ("[[rule]]\nmetric = 'a'\ncontrollable = 'yes'\nactuation = ''\n", "true or false"),
        ("[[", "is not valid TOML"),
    ],
)
def test_tables_of_actuations_are_checked(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "rules.toml").write_text(text)
    with pytest.raises(InputError, match=why):
        actuation.read(tmp_path / "rules.toml")
    with pytest.raises(
        InputError, match=r"rule\.toml: the file of actuation rules does not exist; .* built-in"
    ):
        actuation.read(tmp_path / "rule.toml")
