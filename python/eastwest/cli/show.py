"""Output for a terminal: problems of a scenario and the summary of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eastwest import fidelity
from eastwest.core import Problem
from eastwest.deadlock import deadlock
from eastwest.results import Result, pick
from eastwest.units import clean, count, joules, percent, rate, size, span
from eastwest.views import goals, timeouts
from eastwest.views.labels import plural
from eastwest.work_units import Unit, first_unit, window_words

#: Maximum number of notes: with two lines each, the summary stays below 24 lines.
_MOST_NOTES = 2
_MOST_CLASSES = 2
#: Counters of ``tcp`` in the order of the summary; no event counts in two of them.
_TCP = ("retransmits", "fast_recoveries", "timeouts", "ecn_reductions", "probes")
_MOST_CAUSES = 2
#: Measures that no other row of the summary has.
_ONLY_HERE = ("exchange_us", "transaction_us", "rank_s")
#: Maximum number of workloads with lines of their own.
_MOST_WORKLOADS = 5
_MOST_GOALS = 4


def problem_lines(problems: list[Problem], otherwise: str = "") -> Iterator[Text]:
    """Yield a line for each problem: path, value, allowed values, nearest name."""
    if not problems:
        yield Text(f"eastwest: {clean(otherwise or 'the scenario is wrong', 2000)}")
        return
    number = len(problems)
    yield Text(f"eastwest: {number} problem{'s' if number > 1 else ''}", style="bold")
    for problem in problems:
        line = Text("  ")
        if problem.get("line"):
            line.append(f"line {problem['line']}: ")
        line.append(clean(problem["path"]) or "(whole file)", style="bold red")
        if problem.get("value") is not None:
            line.append(" = ")
            line.append(clean(str(problem["value"])), style="yellow")
        line.append(f": {clean(problem['message'], 1000)}")
        if problem.get("hint"):
            line.append(f"; did you mean {clean(str(problem['hint']))}?", style="green")
        yield line


def leaves(tree: Any, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield all numbers of a nested mapping with their keys."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from leaves(value, (*prefix, str(key)))
    elif isinstance(tree, (int, float)) and not isinstance(tree, bool):
        yield prefix, float(tree)


def summary_table(result: Result) -> Table:
    """Return a table of the main results of a run, smaller than a screen of 80 × 24."""
    s = result.summary
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in _rows(s, _failed_jobs(result)):
        grid.add_row(name, Text(value))
    for name, text in _goals(s):
        grid.add_row(name, text)
    said_of = (("mode", fidelity.error(s)), ("", fidelity.warning(s)), ("deadlock", deadlock(s)))
    for name, said in said_of:
        if said:
            grid.add_row(name, Text(clean(said, 400), style="yellow"))
    notes = [str(note) for note in s.get("notes", [])]
    for note in notes[:_MOST_NOTES]:
        grid.add_row("note", Text(clean(note, 120), style="yellow"))
    if len(notes) > _MOST_NOTES:
        grid.add_row("", Text(f"and {len(notes) - _MOST_NOTES} more in summary.json"))
    grid.add_row("digest", Text(clean(str(s.get("digest", "")))))
    grid.add_row("result", Text(clean(str(result.path), 400), style="bold green"))
    return grid


def _goals(s: Mapping[str, Any]) -> Iterator[tuple[str, Text]]:
    """Yield a row for each goal of the run, the first few of them."""
    found = goals.entries(s)
    style = {"good": "green", "bad": "red", "look": ""}
    for number, entry in enumerate(found[:_MOST_GOALS]):
        yield "" if number else "goal", Text(goals.line(entry), style=style[goals.mark(entry)])
    if len(found) > _MOST_GOALS:
        yield "", Text(f"and {len(found) - _MOST_GOALS} more goals in summary.json")


def print_summary(console: Console, result: Result) -> None:
    """Print the main results of a run."""
    s = result.summary
    title = f"{clean(str(s.get('scenario', '?')), 50)}, seed {s.get('seed', '?')}"
    console.print(Text(title, style="bold underline"))
    console.print(summary_table(result))


def _failed_jobs(result: Result) -> int:
    """Return the number of jobs that did not succeed; 0 where the tables do not have it."""
    if not pick(result.summary, "jobs", "count") or "failed" not in result.jobs.columns:
        return 0
    return result.jobs.filter(result.jobs["failed"].fill_null("") != "").height


def _rows(s: Mapping[str, Any], failed: int) -> Iterator[tuple[str, str]]:
    workloads = s.get("workloads", {})
    hops, cpu = pick(s, "packet_hops"), pick(s, "cpu_s")
    speed = hops / cpu if hops is not None and cpu else None
    yield "simulated", f"{span(pick(s, 'simulated_s'))} in {span(pick(s, 'wall_s'))}"
    memory = pick(s, "peak_rss_mb")
    yield (
        "speed",
        f"{count(speed)} packet-hops per CPU-s ({count(hops)} in {span(cpu)}), "
        f"{size(memory * 1e6 if memory else None)}",
    )
    jobs = pick(s, "jobs", "count")
    if jobs:
        makespan = span(pick(s, "jobs", "makespan_s"))
        ended = f"{count(jobs - failed)} done"
        ended += f", {count(failed)} failed" if failed else ""
        yield "jobs", f"{ended}, makespan {makespan}"
        if len(workloads) < 2:
            yield "runtime", spread(s.get("jobs"), "runtime_s", 1.0)
    if pick(s, "rounds", "count"):
        goodput = rate(pick(s, "rounds", "goodput_bps"))
        yield "rounds", f"{count(pick(s, 'rounds', 'count'))} done, goodput {goodput}"
    done, flows = pick(s, "flows", "completed"), pick(s, "flows", "count")
    if flows:
        yield "flows", f"{count(done)} of {count(flows)} complete"
        if len(workloads) < 2:
            yield "FCT", spread(s.get("flows"), "fct_us", 1e-6)
    yield from _workloads(s, workloads)
    if pick(s, "streams", "count"):
        arrived, sent = pick(s, "streams", "frames_received"), pick(s, "streams", "frames_sent")
        got = rate(pick(s, "streams", "throughput_bps"))
        yield "frames", f"{count(arrived)} of {count(sent)} arrived, {got} in all"
    yield from _latency(s.get("latency_us"))
    yield "throughput", f"{rate(pick(s, 'throughput_bps'))} received per host, mean of all hosts"
    energy = pick(s, "energy_j", "total")
    of_on, of_ideal = pick(s, "energy_j", "of_always_on"), pick(s, "energy_j", "of_ideal")
    if of_on is not None and of_on < 1 and of_ideal is not None:
        yield "energy", f"{joules(energy)}, {percent(of_on)} of always on, {of_ideal:.3g} × ideal"
    yield "drops", tally(by_kind(s.get("drops")))
    yield "TCP", tcp_counters(s.get("tcp"))
    if isinstance(s.get("rocev2"), Mapping):
        sums = ("retransmits", "timeouts", "naks", "cnps")
        yield "RoCEv2", tally({key: pick(s, "rocev2", key) for key in sums})


def _workloads(
    s: Mapping[str, Any], workloads: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield the measure of each workload in its own unit, also while another one was active.

    A single workload whose unit is jobs, rounds or flows has other rows of the summary.
    """
    if "window" in s:
        yield "window", window_words(s["window"])
    for name, measures in list(workloads.items())[:_MOST_WORKLOADS]:
        unit = first_unit(measures)
        if unit is None or (len(workloads) < 2 and unit.name not in _ONLY_HERE):
            continue
        if unit.name == "rank_s":
            yield clean(name, 12), f"runtime {span(pick(measures, 'rank_s', 'max'))}"
            continue
        yield clean(name, 12), _in_its_unit(measures, unit)
        for other, beside in s.get("while", {}).items():
            if unit.name in beside.get(name, {}):
                during = _in_its_unit(beside[name], unit)
                yield "", f"while {clean(other, 30)}, {during}"
    if len(workloads) > _MOST_WORKLOADS:
        yield "", f"and {len(workloads) - _MOST_WORKLOADS} more workloads in summary.json"


def _in_its_unit(measures: Mapping[str, Any], unit: Unit) -> str:
    """Return the number of units and the percentiles of their times."""
    found = measures[unit.name]
    scale = 1e-6 if unit.name.endswith("_us") else 1.0
    counted = plural(found["count"], unit.noun)
    if found["count"] == 1:
        return f"{counted}: {span(found['max'] * scale)}"
    return f"{counted}: {spread({'of': {**found, 'mean': None}}, 'of', scale)}"


def spread(tree: Any, stem: str, unit_s: float) -> str:
    """Return mean, median and tails of a quantity, stored nested or by names with the statistic."""
    nested = tree.get(stem) if isinstance(tree, Mapping) else None
    words = (("mean", "mean"), ("p50", "median"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max"))
    parts = []
    for key, word in words:
        value = pick(nested, key) if nested is not None else pick(tree, f"{stem}_{key}")
        if value is not None:
            parts.append(f"{word} {span(value * unit_s)}")
    return ", ".join(parts) or "none"


def _latency(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield one row for all packets, and one for each class if there are several."""
    if not isinstance(tree, Mapping):
        return
    tree = {**tree, "max": None}  # one more number would not fit the line
    yield "latency", spread({"us": tree}, "us", 1e-6)
    classes = tree.get("classes", tree.get("by_class"))
    if isinstance(classes, Mapping) and len(classes) > 1:
        for name in list(classes)[:_MOST_CLASSES]:
            yield (
                f"  {clean(str(name), 12)}",
                spread({"us": {**classes[name], "max": None}}, "us", 1e-6),
            )


def tcp_counters(tree: Any) -> str:
    """Return the counters of TCP that are not zero; causes belong to the number of timeouts."""
    parts = []
    for key in _TCP:
        value = pick(tree, key)
        if not value:
            continue
        part = f"{count(value)} {key.replace('_', ' ')}"
        causes = tree.get("timeout_causes") if key == "timeouts" else None
        if isinstance(causes, Mapping) and any(causes.values()):
            named = {timeouts.short(str(cause)): n for cause, n in causes.items()}
            part += f" ({tally(named, _MOST_CAUSES)})"
        parts.append(part)
    return ", ".join(parts) or "none"


def by_kind(drops: Any) -> dict[str, float]:
    """Return drops by kind of packet, with the cause where there is more than one."""
    counted = [(path, value) for path, value in leaves(drops) if value]
    causes = {path[0] for path, _ in counted if len(path) > 1}
    result: dict[str, float] = {}
    for path, value in counted:
        name = path[-1] if len(causes) < 2 else f"{path[-1]} ({path[0]})"
        result[name] = result.get(name, 0) + value
    return result


def tally(tree: Any, most: int = 3) -> str:
    """Return counters that are not zero with their names, the largest first."""
    counted = [(" ".join(path).replace("_", " "), value) for path, value in leaves(tree) if value]
    counted.sort(key=lambda pair: -pair[1])
    parts = [f"{count(value)} {clean(name, 30)}" for name, value in counted[:most]]
    if len(counted) > most:
        parts.append(f"{count(sum(value for _, value in counted[most:]))} other")
    return ", ".join(parts) or "none"
