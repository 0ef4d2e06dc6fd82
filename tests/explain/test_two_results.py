"""The first difference of two results and what followed: made by hand, and of small runs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import eastwest as ew
from eastwest.cli import app
from eastwest.errors import InputError
from eastwest.explain import Story, difference
from eastwest.goals import evaluate, form
from eastwest.sweep.check import load
from eastwest.sweep.metrics import metrics_in
from eastwest.views.difference import compare
from eastwest.views.evidence import Evidence
from hand_made import SCENARIO, TO_H3, drop, event, flow, folder, links

#: A summary of a run that ended by itself after 2 s, with all of its flows.
WHOLE = {"simulated_s": 2.0, "flows": {"count": 1, "completed": 1}}


def pair(
    path: Path,
    first: dict[str, Any],
    second: dict[str, Any],
    summary: dict[str, Any] | None = None,
    scenario: str = SCENARIO,
) -> tuple[ew.Result, ew.Result]:
    """Return two results with different digests.

    The arguments are tables, a summary for both, and the scenario of the second.
    """
    told = [{**WHOLE, **(summary or {}), "digest": each} for each in "ab"]
    return (
        folder(path / "a", first, told[0]),
        folder(path / "b", second, told[1], scenario=scenario),
    )


def lines(story: Story, title: str) -> list[str]:
    """Return the lines of the section whose title begins with ``title``."""
    return next(s.lines for s in story.sections if s.title.startswith(title))


def test_equal_digests_are_identical_runs(tmp_path: Path) -> None:
    one = folder(tmp_path / "a", {"flows": [flow()]}, {**WHOLE, "digest": "d"})
    other = folder(
        tmp_path / "b",
        {"flows": [flow(fct_us=1.0)]},
        {**WHOLE, "digest": "d"},
        scenario=SCENARIO.replace('min_rto = "200 ms"', 'min_rto = "1 ms"'),
    )
    story = difference(one, other)
    assert story.title.endswith("identical")
    assert "had no effect" in story.summary
    assert story.facts["digests_equal"]
    assert lines(story, "Settings") == ["tcp.min_rto: 200 ms, then 1 ms"]
    with pytest.raises(InputError, match="are the same result folder"):
        difference(one, one)


def test_the_first_difference_is_the_earliest_of_all_tables(tmp_path: Path) -> None:
    both = pair(
        tmp_path,
        {"flows": [flow(fct_us=4000.0)], "events": [drop(1.001, 0), drop(1.002, 1000)]},
        {
            "flows": [flow(fct_us=9000.0, retransmits=1)],
            "events": [drop(1.001, 0), event(1.0015, "timeout", cause="tail")],
        },
    )
    story = difference(*both)
    assert story.facts["same_until_s"] == pytest.approx(1.0015)
    found = story.facts["first_differences"]
    assert [each["moments"] for each in found] == ["events.time_s", "flows.finish_s"]
    assert [each["time_s"] for each in found] == pytest.approx([1.0015, 1.004])
    assert lines(story, "The first difference") == [
        f"Only in {both[0].path}:",
        "– 1.002000000 s: segment (1 kB) of h0 → h3 lost at leaf0->h3: the queue was full",
        f"Only in {both[1].path}:",
        "– 1.001500000 s: timeout of h0 → h3, byte 0 (the end of the message was lost, so no "
        "duplicate ACKs followed)",
    ]
    assert story.facts["flows"]["slower"] == 1
    [changed] = story.facts["flows"]["listed"]
    assert changed["change_us"] == pytest.approx(5000)
    assert sum(p["us"] for p in changed["parts"][1]) == pytest.approx(9000)


def test_a_start_of_another_flow_is_found_before_its_end(tmp_path: Path) -> None:
    rows = [flow(0, fct_us=500_000.0), flow(1, start_s=1.25, fct_us=500_000.0)]
    story = difference(*pair(tmp_path, {"flows": rows[:1]}, {"flows": rows}))
    assert story.facts["same_until_s"] == pytest.approx(1.25)
    assert lines(story, "The first difference")[0].endswith("the other result lacks.")
    assert story.facts["flows"]["only_in"] == [0, 1]


def test_a_run_that_was_cut_off_has_no_rows_for_what_it_began(tmp_path: Path) -> None:
    """A flow that one run had not completed is no difference at its start."""
    rows = [flow(0, fct_us=500_000.0), flow(1, start_s=1.25, fct_us=500_000.0)]
    summary = {"simulated_s": 2.0, "flows": {"count": 2, "completed": 1}}
    story = difference(*pair(tmp_path, {"flows": rows[:1]}, {"flows": rows}, summary))
    assert story.facts["same_until_s"] == pytest.approx(1.75)
    assert any(line.startswith("Starts of flows") for line in story.unknown)
    # A run that ends at its duration may also have unfinished flows.
    at_end = 'name = "by-hand"\nduration = "2 s"'
    scenario = SCENARIO.replace('name = "by-hand"', at_end)
    cut = pair(tmp_path / "cut", {"flows": rows[:1]}, {"flows": rows}, scenario=scenario)
    assert difference(*cut).facts["same_until_s"] == pytest.approx(1.75)


def test_nothing_is_said_of_the_time_after_the_shorter_run(tmp_path: Path) -> None:
    one = folder(tmp_path / "a", {"flows": [flow()]}, {**WHOLE, "simulated_s": 1.1, "digest": "a"})
    rows = [flow(), flow(1, start_s=1.5)]
    other = folder(tmp_path / "b", {"flows": rows}, {**WHOLE, "digest": "b"})
    story = difference(one, other)
    assert story.title.endswith("no difference in their tables")
    assert "up to 1.100000000 s, the end of the shorter run" in story.summary
    assert "1.100000000 s and 2.000000000 s" in story.summary


def test_a_full_table_of_events_is_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    many = [drop(1.0 + i / 1000, 0) for i in range(5)]
    summary = {"event_log": {"rows": 3, "left_out": 2}}
    one = folder(tmp_path / "a", {"events": many[:3]}, {**WHOLE, **summary, "digest": "a"})
    other = folder(tmp_path / "b", {"events": many}, {**WHOLE, "digest": "b"})
    found = compare(Evidence(one), Evidence(other))
    assert found.tables == []
    assert found.not_compared == [
        "Differences in events after 1.002000000 s: the table of a run was full."
    ]
    none = folder(tmp_path / "c", {}, {**WHOLE, "digest": "c"}, SCENARIO + "[measure]\nevents = 0")
    assert "recorded no events" in compare(Evidence(none), Evidence(other)).not_compared[0]


def samples(step_s: float, carried: list[int]) -> dict[str, Any]:
    """Return samples of the link to h3, and the times of all intervals."""
    times = [step_s * (i + 1) for i in range(len(carried))]
    return {
        "traffic": [{"time_s": at, "tier": "host-down"} for at in times],
        "link_samples": [
            {"time_s": at, "link": TO_H3, "bytes": value}
            for at, value in zip(times, carried, strict=True)
            if value
        ],
    }


def test_a_sampled_table_gives_an_interval(tmp_path: Path) -> None:
    both = pair(tmp_path, samples(0.1, [5, 5, 5, 5]), samples(0.1, [5, 5, 6, 5]))
    story = difference(*both)
    [found] = story.facts["first_differences"]
    assert (found["since_s"], found["time_s"]) == pytest.approx((0.2, 0.3))
    assert story.facts["same_until_s"] == pytest.approx(0.2)
    assert "– 0.300000000 s: leaf0->h3 carried 5 B, 0 packets lost" in lines(story, "The first")


def test_an_exact_time_in_the_interval_comes_first(tmp_path: Path) -> None:
    tables = [{**samples(0.5, [5, 5, 5]), "flows": [flow(fct_us=us)]} for us in (200e3, 300e3)]
    tables[1] |= samples(0.5, [5, 5, 6])
    story = difference(*pair(tmp_path, tables[0], tables[1]))
    assert story.facts["first_differences"][0]["moments"] == "flows.finish_s"
    assert story.facts["same_until_s"] == pytest.approx(1.0)
    assert "Tables with exact times, not samples, are equal up to 1.200000000 s" in story.summary


def test_samples_are_compared_at_the_longer_interval(tmp_path: Path) -> None:
    both = pair(tmp_path, samples(0.1, [1, 2, 3, 4]), samples(0.2, [3, 7]))
    assert compare(*map(Evidence, both)).tables == []
    other = pair(tmp_path / "more", samples(0.1, [1, 2, 3, 4]), samples(0.2, [3, 8]))
    [found] = compare(*map(Evidence, other)).tables
    assert (found.since_s, found.time_s) == pytest.approx((0.2, 0.4))
    odd = compare(*map(Evidence, pair(tmp_path / "odd", samples(0.2, [1]), samples(0.3, [1]))))
    assert "the sampling intervals 200 ms and 300 ms of the runs" in odd.not_compared[0]


def test_ports_are_compared_by_name(tmp_path: Path) -> None:
    """Another fabric numbers its links in another way."""
    moved = [{**row, "link": row["link"] + 10} for row in links()]
    one = folder(tmp_path / "a", {"events": [drop(1.0, 0)]}, {**WHOLE, "digest": "a"})
    tables = {"events": [drop(1.0, 0, link=TO_H3 + 10, connection=7)], "links": moved}
    other = folder(tmp_path / "b", tables, {**WHOLE, "digest": "b"})
    assert compare(Evidence(one), Evidence(other)).tables == []


def test_counts_that_changed_are_told_by_cause_and_place(tmp_path: Path) -> None:
    def made(name: str, lost: int, timeouts: int) -> ew.Result:
        rows = [{**row, "drops": lost if row["link"] == TO_H3 else 4} for row in links()]
        summary = {
            **WHOLE,
            "digest": name,
            "packets": {"dropped": lost},
            "drops": {"full": {"data": lost, "ack": 0}, "loss": {"data": 4}},
            "tcp": {"timeouts": timeouts, "retransmits": 5, "timeout_causes": {"tail": timeouts}},
        }
        return folder(tmp_path / name, {"links": rows}, summary)

    story = difference(made("a", 10, 2), made("b", 15, 0))
    assert lines(story, "What followed: counts") == [
        "packets dropped: 10, then 15 (+50 %)",
        "– the queue was full: 10, then 15 (+50 %)",
        "TCP timeouts: 2, then 0 (−100 %)",
        "– lost tail: 2, then 0 (−100 %)",
        "drops at leaf0->h3: 10, then 15 (+50 %)",
        "Unchanged: lost on the line, TCP segments sent again.",
    ]
    assert story.facts["counts"]["drops_by_port"] == {"leaf0->h3": [10, 15]}


def test_goals_and_workloads_while_another_is_active_are_told(tmp_path: Path) -> None:
    def made(name: str, p99_us: float) -> ew.Result:
        own = {"exchange_us": {"count": 5, "mean": 43.7, "p99": 43.7}}
        during = {"exchange_us": {"count": 5, "mean": p99_us, "p99": p99_us}}
        summary = {
            **WHOLE,
            "digest": name,
            "marks": {"data": 3},
            "workloads": {"service": own},
            "while": {"hadoop/shuffle": {"service": during}},
        }
        measure = "while.hadoop/shuffle.service.exchange_us.p99"
        goals = evaluate.of_run(form.read({measure: "< 100 us"})[0], metrics_in(summary))
        return folder(tmp_path / name, {}, {**summary, "goals": goals})

    story = difference(made("a", 55.0), made("b", 221.0))
    assert lines(story, "What followed: each") == [
        "service (exchange): mean 43.7 µs, then 43.7 µs; p99 43.7 µs, then 43.7 µs",
        "service (exchange) while hadoop/shuffle: mean 55 µs, then 221 µs (× 4.02); "
        "p99 55 µs, then 221 µs (× 4.02)",
    ]
    assert lines(story, "What followed: goals") == [
        "while.hadoop/shuffle.service.exchange_us.p99 < 100 us: met with 55 µs, 45 % (45 µs) "
        "below the limit; then missed with 221 µs, 121 % (121 µs) above the limit"
    ]
    assert story.facts["goals"][0]["met"] == [True, False]
    assert story.facts["while"]["hadoop/shuffle"]["service"]["values"][1]["p99"] == 221.0
    assert any("marks (ECN)" in text and "measure.tcp_trace" in text for text in story.unknown)


def test_a_job_tells_which_part_of_its_critical_path_changed(tmp_path: Path) -> None:
    def made(name: str, read_s: float, number: int) -> ew.Result:
        end = 14.0 + read_s
        task = {
            "job": 4,
            "workload": "w",
            "task": number,
            "kind": "map",
            "host": 1,
            "assigned_s": 13.0,
            "started_s": 14.0,
            "input_done_s": end,
            "finished_s": end + 1,
            "locality": "rack",
        }
        job = {
            "job": 4,
            "workload": "w",
            "name": "sort",
            "kind": "t",
            "submitted_s": 10.0,
            "started_s": 14.0,
            "finished_s": end + 2,
            "runtime_s": end - 8,
            "maps": 1,
        }
        summary = {**WHOLE, "simulated_s": 100.0, "digest": name}
        return folder(tmp_path / name, {"jobs": [job], "tasks": [task]}, summary)

    story = difference(made("a", 2.0, 0), made("b", 5.0, 3))
    told = lines(story, "What followed: jobs")
    assert told[1] == "job 4 (sort) of workload 'w': 8 s, then 11 s (+37.5 %)"
    assert told[2:] == ["– +3 s: map: reading from its rack, computing meanwhile (2 s, then 5 s)"]
    assert lines(story, "What followed: each") == [
        "w (job): mean 8 s, then 11 s (+37.5 %); p99 8 s, then 11 s (+37.5 %)"
    ]


def test_only_the_seed_differs(tmp_path: Path) -> None:
    one = folder(tmp_path / "a", {}, {**WHOLE, "digest": "a"}, "seed = 1\n" + SCENARIO)
    summary = {**WHOLE, "digest": "b", "seed": 2}
    other = folder(tmp_path / "b", {}, summary, "seed = 2\n" + SCENARIO)
    assert lines(difference(one, other), "Chance") == [
        "Only the seeds differ: all differences are chance."
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ew.Result]:
    """Return small runs, each pair with one different setting; ``again`` repeats ``base``."""
    out = tmp_path_factory.mktemp("runs")
    base = {"workload.incast.rounds": "2", "fabric.hosts": "9", "workload.incast.receiver": "h8"}
    settings: dict[str, dict[str, str]] = {
        "base": {},
        "again": {},
        "more": {"workload.incast.rounds": "3"},
        "buffer": {"fabric.queue.limit": "32 KB"},
    }
    return {
        name: ew.run("s2", set={**base, **changed}, out=out / name)
        for name, changed in settings.items()
    }


def test_a_run_and_its_repetition_are_identical(runs: dict[str, ew.Result]) -> None:
    assert ew.difference(runs["base"], runs["again"]).facts["digests_equal"]


def test_a_further_round_differs_at_its_start_only(runs: dict[str, ew.Result]) -> None:
    story = ew.difference(runs["base"], runs["more"])
    last_s = runs["base"].rounds["finished_s"].max()
    assert story.facts["same_until_s"] == pytest.approx(last_s)
    assert story.facts["flows"]["changed"] == 0
    assert story.facts["workloads"]["incast"]["values"][1]["count"] == 3


def test_the_first_event_of_a_run_with_a_shorter_queue(runs: dict[str, ew.Result]) -> None:
    story = ew.difference(runs["base"], runs["buffer"])
    tables = [
        runs[name].events.drop("connection").sort("time_s", "src").to_dicts()
        for name in ("base", "buffer")
    ]
    first_s = min(
        min(row["time_s"] for row in one if row not in other)
        for one, other in (tables, tables[::-1])
    )
    found = story.facts["first_differences"][0]
    assert found["moments"] == "events.time_s"
    assert found["time_s"] == pytest.approx(first_s, abs=1e-12)
    assert story.facts["counts"]["packets dropped"] == [
        runs[name].summary["packets"]["dropped"] for name in ("base", "buffer")
    ]


def test_the_sweep_file_that_is_shown_can_be_run(
    runs: dict[str, ew.Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs["base"].path.parent)
    story = ew.difference("base", "buffer")
    file = tmp_path / "both.toml"
    file.write_text("\n".join(lines(story, "Chance")[1:]))
    assert tomllib.loads(file.read_text())["axis"][0]["values"] == [["64 KB"], ["32 KB"]]
    (tmp_path / "base").symlink_to(runs["base"].path)
    assert load(file).count == 2


def test_the_command_compares_two_folders(
    runs: dict[str, ew.Result], capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            app(["explain", str(runs["base"].path), *words])
        return int(str(ended.value.code or 0))

    other = str(runs["buffer"].path)
    assert command(other, "--json", "--top", "1") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "difference"
    assert len(told["facts"]["flows"]["listed"]) == 1
    assert command(other) == 0
    assert "fabric.queue.limit: 64 KB, then 32 KB" in capsys.readouterr().out
    assert command(other, "7") == 2
    assert "compared as a whole" in capsys.readouterr().err
    assert command(str(runs["base"].path.parent)) == 2
    assert "is not a result folder" in capsys.readouterr().err
