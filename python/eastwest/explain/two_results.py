"""Comparison of two results: their first difference in simulated time, and its consequences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from eastwest import by_workload
from eastwest.errors import InputError
from eastwest.explain import flow as flows
from eastwest.explain import job as jobs
from eastwest.explain.story import Part, Story
from eastwest.results import Result, pick
from eastwest.units import clean, count, percent, size, span
from eastwest.views import goals, timeouts
from eastwest.views.difference import (
    Difference,
    First,
    changed_ports,
    compare,
    paired_flows,
    paired_jobs,
)
from eastwest.views.evidence import Evidence
from eastwest.views.labels import plural
from eastwest.views.metrics import change
from eastwest.views.settings import ABSENT, differences, tree, values
from eastwest.work_units import first_unit

_MOST_SETTINGS = 20
_MOST_PORTS = 3
#: Maximum number of lines on workloads for times when another workload was active.
_MOST_WHILE = 20
#: Maximum length of a line of the shown sweep file, in characters: a terminal must not break it.
_LONGEST_LINE = 90
#: Settings that only name a run or choose what it records: the shown sweep does not vary them.
_NO_AXIS = ("name", "seed", "measure.")
#: Names of the causes of drops in the table ``events``, by their names in a summary.
_DROPS = {cause.replace("-", "_").replace("queue_full", "full"): cause for cause in flows.CAUSES}
_COUNTERS = {
    "retransmits": "segments sent again",
    "timeouts": "timeouts",
    "spurious_timeouts": "spurious timeouts",
    "fast_recoveries": "fast recoveries",
    "ecn_reductions": "window reductions by ECN",
    "naks": "NAKs",
    "cnps": "CNPs",
}
#: Pattern of numbers of tasks in the texts of the parts of a job's critical path.
_TASK = re.compile(r"\b(map|reduce) \d+")
#: Pattern of the remark on the ideal time of a flow in the texts of its parts.
_IDEAL = re.compile(r"; the ideal time of the whole flow is .*")
_ASSIGNED = re.compile(r", with \d+ maps? of the job assigned before it")


def story(first: Result | Evidence, second: Result | Evidence, top: int = 3) -> Story:
    """Return a story of the differences of two results; see ``eastwest.difference``."""
    both = tuple(each if isinstance(each, Evidence) else Evidence(each) for each in (first, second))
    one, other = both
    names = [clean(str(each.result.path), 80) for each in both]
    if one.result.path.resolve() == other.result.path.resolve():
        raise InputError(
            f"{names[0]} and {names[1]} are the same result folder: name two different folders"
        )
    result = Story("difference", "", f"{names[0]} and {names[1]}", "")
    different = differences([one.result, other.result])
    same = bool(one.result.digest) and one.result.digest == other.result.digest
    result.facts |= {
        "folders": names,
        "seeds": [each.result.summary.get("seed") for each in both],
        "settings": [{"path": path, "values": each} for path, each in different],
        "digests_equal": same,
    }
    _settings(result, different)
    if same:
        result.title += ": identical"
        result.summary = (
            f"Both results have the digest {one.result.digest}: each event is the same in "
            "both simulations"
            + ("; the settings that differ had no effect on it." if different else ".")
        )
        return result
    found = compare(one, other)
    _first(result, found, both, names)
    _workloads(result, one.result, other.result)
    _goals(result, one.result, other.result)
    _counts(result, one, other)
    _flows(result, one, other, names, top)
    _jobs(result, one, other, names, top)
    _chance(result, one, other, different)
    result.lacks(*found.not_compared)
    if any(_sum(each.result.summary, "marks") for each in both):
        result.lacks(
            "Exact times of marks (ECN): link_samples counts them per sampling interval. With "
            "another threshold, the first mark that differs may be earlier than the first "
            "difference above; measure.tcp_trace records its first effect on a window."
        )
    result.lacks(
        "Differences in the order and times of packets that no table has; the digest includes "
        "them. measure.capture and measure.tcp_trace record more.",
        "Whether the first difference caused the later ones: the tables show only their order.",
    )
    return result


def _settings(result: Story, different: list[tuple[str, list[str]]]) -> None:
    """Add a section on the settings that differ.

    ``different`` has for each setting its path, and its values in the first and in the second
    result.
    """
    lines = [f"{path}: {before}, then {after}" for path, (before, after) in different]
    if len(lines) > _MOST_SETTINGS:
        lines[_MOST_SETTINGS:] = [f"and {len(lines) - _MOST_SETTINGS} more (all with --json)"]
    result.add("Settings that differ", *(lines or ["None: the scenarios are equal."]))


def _first(result: Story, found: Difference, both: tuple[Evidence, ...], names: list[str]) -> None:
    """Add sections on the first of all differences, and on the first difference of each table.

    ``found`` is the comparison of ``both`` results, ``names`` are the names of their folders.
    """
    ends = found.ends_s
    result.facts |= {
        "same_until_s": found.same_until_s,
        "compared": found.compared,
        "first_differences": [
            {
                "moments": each.kind.name,
                "since_s": each.since_s,
                "time_s": each.time_s,
                "only": list(each.only),
            }
            for each in found.tables
        ],
    }
    tables = list(dict.fromkeys(name.partition(".")[0] for name in found.compared))
    first = found.first
    if first is None:
        result.title += ": no difference in their tables"
        result.summary = (
            f"The digests differ, but up to {found.until_s:.9f} s, the end of the shorter run, "
            f"these tables are equal: {', '.join(tables)}."
        )
        if ends[0] != ends[1]:
            result.summary += f" The runs end at {ends[0]:.9f} s and {ends[1]:.9f} s."
        return
    result.title += f": first different at {_when(first)}"
    share = percent(first.since_s / found.until_s) if found.until_s > 0 else "–"
    exact_s = min((each.since_s for each in found.tables if each.is_exact), default=found.until_s)
    same = f"Up to {found.same_until_s:.9f} s all tables of both results are equal"
    if found.same_until_s <= 0 < exact_s:
        share = percent(exact_s / found.until_s)
        same = (
            f"Sampled tables differ in their first interval; tables with exact times are equal up "
            f"to {exact_s:.9f} s"
        )
    elif first.since_s > found.same_until_s:
        same += f". Tables with exact times, not samples, are equal up to {first.since_s:.9f} s"
    result.summary = (
        f"{same}, which is {share} of the shorter run. The runs end at {span(ends[0])} and "
        f"{span(ends[1])}. The first "
        f"difference is in the table {first.kind.table} ({first.kind.time})."
    )
    lines = []
    for each, name, rows in zip(both, names, first.only, strict=True):
        if rows:
            lines.append(f"Only in {name}:")
            lines += [f"– {row['at']:.9f} s: {_words(each, first, row)}" for row in rows]
        else:
            lines.append(f"{name}: no row at this time that the other result lacks.")
    result.add(f"The first difference, in {first.kind.name}", *lines)
    result.add(
        "First difference of each table",
        *(f"{each.kind.name}: {_when(each)}" for each in found.tables),
    )
    equal = [name for name in tables if name not in {each.kind.table for each in found.tables}]
    if equal:
        result.sections[-1].lines.append(f"No difference in {', '.join(equal)}.")


def _when(first: First) -> str:
    if first.is_exact:
        return f"{first.time_s:.9f} s"
    return f"{first.since_s:.6f} to {first.time_s:.6f} s (a sampling interval)"


def _words(evidence: Evidence, first: First, row: Mapping[str, Any]) -> str:
    """Return as text the row of a table with which two results first differ."""
    teller = _TELLERS.get(first.kind.table)
    if teller is not None:
        return teller(first.kind.time, row)
    rest = ", ".join(f"{name} {value}" for name, value in row.items() if name != "at")
    return f"{first.kind.time.removesuffix('_s').replace('_', ' ')}: {clean(rest, 300)}"


def _event(_: str, row: Mapping[str, Any]) -> str:
    pair = f"{row['src']} → {row['dst']}"
    if row["what"] == "drop":
        kind = flows.KINDS.get(row["kind"], row["kind"])
        place = f" at {row['link']}" if row["link"] else ""
        payload = f" ({size(row['bytes'])})" if row["bytes"] else ""
        why = flows.CAUSES.get(row["cause"], row["cause"])
        return f"{kind}{payload} of {pair} lost{place}: {why}"
    if row["what"] == "timeout":
        why = timeouts.long(row["cause"])
        return f"timeout of {pair}, byte {row['stream_start']:,}" + (f" ({why})" if why else "")
    words = {
        "recovery": "fast retransmit starts",
        "recovered": "recovered from losses",
        "spurious": "a timeout is found to be spurious",
        "failed": "the connection is aborted",
    }
    return f"{pair}: {words.get(row['what'], row['what'])}"


def _flow(time: str, row: Mapping[str, Any]) -> str:
    what = f"{size(row['bytes'])} ({row['purpose']}) from {row['src']} to {row['dst']}"
    if time == "start_s":
        return f"a flow is written: {what}, of {_owner(row)}"
    took = span(row["at"] - row["start_s"])
    lost = f"{row['retransmits']} sent again, {plural(row['timeouts'], 'timeout')}"
    return f"a flow is complete after {took}: {what}, of {_owner(row)}; {lost}"


def _job(time: str, row: Mapping[str, Any]) -> str:
    done = {"submitted_s": "is submitted", "started_s": "starts", "finished_s": "is done"}[time]
    return f"job {row['job']} ({row['name']}) of workload {row['workload']!r} {done}"


def _task(time: str, row: Mapping[str, Any]) -> str:
    done = {
        "assigned_s": "is given to",
        "started_s": "starts on",
        "input_done_s": "has its input on",
        "finished_s": "is finished on",
    }[time]
    whose = f"job {row['job']} of workload {row['workload']!r}"
    return f"{row['kind']} {row['task']} of {whose} {done} {row['host']}"


def _sample(_: str, row: Mapping[str, Any]) -> str:
    marked = f", {row['marks']} marked" if row.get("marks") else ""
    return (
        f"{row['link']} carried {size(row['bytes'])}, {plural(row['drops'], 'packet')} lost{marked}"
    )


def _queue(_: str, row: Mapping[str, Any]) -> str:
    return f"{plural(row['packets'], 'packet')} ({size(row['bytes'])}) waiting at {row['link']}"


def _window(_: str, row: Mapping[str, Any]) -> str:
    return (
        f"window of {row['src']} → {row['dst']} {size(row['cwnd_bytes'])} ({row['phase']}), "
        f"{size(row['in_flight_bytes'])} in flight"
    )


_TELLERS: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "events": _event,
    "flows": _flow,
    "jobs": _job,
    "tasks": _task,
    "link_samples": _sample,
    "queues": _queue,
    "tcp_trace": _window,
}


def _changed(title: str, before: float, after: float, write: Callable[[float], str]) -> str:
    """Return ``TITLE 1 ms, then 2 ms (+100 %)``: a number in both runs and its relative change."""
    by = f" ({change(after / before)})" if before and before != after else ""
    return f"{title} {write(before)}, then {write(after)}{by}"


#: Measures by (other workload that was active, or empty for the whole run; measured workload).
_Measures = dict[tuple[str, str], dict[str, Any]]


def _measures(result: Result) -> _Measures:
    """Return the measures of each workload, also for times when another workload was active.

    The keys are (other workload that was active, or empty for the whole run; measured workload).
    Summaries of old formats lack these measures; then they are computed from the tables.
    """
    found = result.summary
    if not isinstance(found.get("workloads"), dict):
        tables = {name: result.table(name).lazy() for name in by_workload.TABLES}
        found = by_workload.measured(tables, pick(result.summary, "simulated_s") or 0.0, {})
    during = found.get("while")
    parts = {"": found["workloads"], **(during if isinstance(during, dict) else {})}
    return {(active, name): own for active, each in parts.items() for name, own in each.items()}


def _workloads(result: Story, first: Result, second: Result) -> None:
    """Add a section on mean and 99th percentile of each workload in its own unit, in both runs.

    Measures for times when another workload was active follow those for the whole run.
    """
    before, after = _measures(first), _measures(second)
    lines = []
    facts: dict[str, Any] = {}
    facts_while: dict[str, dict[str, Any]] = {}
    keys = dict.fromkeys([*before, *after])
    for key_of in sorted(keys, key=lambda key: key[0] != ""):
        active, name = key_of
        unit = first_unit(before.get(key_of, {})) or first_unit(after.get(key_of, {}))
        if unit is None:
            continue
        was, now = (each.get(key_of, {}).get(unit.name) for each in (before, after))
        there = facts_while.setdefault(active, {}) if active else facts
        there[name] = {"unit": unit.name, "values": [was, now]}
        label = f"{clean(str(name), 40)} ({unit.noun})"
        label += f" while {clean(str(active), 60)}" if active else ""
        if was is None or now is None:
            place = "first" if now is None else "second"
            lines.append(f"{label}: only the {place} run has values")
            continue
        scale = 1e-6 if unit.name.endswith("_us") else 1.0

        def write(value: float, scale: float = scale) -> str:
            return span(value * scale)

        told = [
            _changed(word, was[key], now[key], count if key == "count" else write)
            for key, word in (("count", "number"), ("mean", "mean"), ("p99", "p99"))
            if key != "count" or was[key] != now[key]
        ]
        lines.append(f"{label}: {'; '.join(told)}")
    result.facts["workloads"] = facts
    result.facts["while"] = facts_while
    if len(lines) > len(facts) + _MOST_WHILE:
        hidden = len(lines) - len(facts) - _MOST_WHILE
        lines[len(facts) + _MOST_WHILE :] = [f"and {hidden} more (all with --json)"]
    result.add("What followed: each workload in its own unit", *lines)


def _goals(result: Story, first: Result, second: Result) -> None:
    """Add a section on goals: value of each goal, and whether the goal is met, in both runs."""
    pairs = goals.of_both(first, second)
    result.facts["goals"] = [
        {
            "measure": was["measure"],
            "goal": was["goal"],
            "values": [was["value"], now["value"]],
            "met": [was["met"], now["met"]],
            "margins": [was["margin"], now["margin"]],
        }
        for was, now in pairs
    ]
    result.add(
        "What followed: goals",
        *(f"{goals.line(was)}; then {goals.outcome(now)}" for was, now in pairs),
    )


def _numbers(summary: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Yield (key of the fact, label, value) of counts in a summary: losses, marks, timeouts.

    A label that begins with a dash is a part of the last count whose label has no dash.
    """
    yield "packets dropped", "packets dropped", pick(summary, "packets", "dropped") or 0
    for key, cause in _DROPS.items():
        lost = _sum(summary.get("drops"), key)
        yield f"packets dropped: {cause}", f"– {flows.CAUSES[cause]}", lost
    yield "packets marked", "packets marked (ECN)", _sum(summary, "marks")
    for family, name in (("tcp", "TCP"), ("rocev2", "RoCEv2")):
        counters = summary.get(family)
        if not isinstance(counters, Mapping):
            continue
        for key, words in _COUNTERS.items():
            yield f"{family}.{key}", f"{name} {words}", pick(counters, key) or 0
            causes = counters.get(f"{key.removesuffix('s')}_causes")
            for cause in causes if isinstance(causes, Mapping) else ():
                times = pick(causes, cause) or 0
                yield f"{family}.{key}: {cause}", f"– {timeouts.short(str(cause))}", times


def _sum(tree: Any, key: str) -> float:
    """Return the sum of the numbers in the mapping ``tree[key]``; 0 if there is no mapping."""
    inner = tree.get(key) if isinstance(tree, Mapping) else None
    return sum(pick(inner, name) or 0 for name in inner) if isinstance(inner, Mapping) else 0


def _counts(result: Story, first: Evidence, second: Evidence) -> None:
    """Add a section on counts that changed: losses by cause and port, timeouts by cause, marks."""
    before, after = (
        {key: (words, number) for key, words, number in _numbers(each.result.summary)}
        for each in (first, second)
    )
    both = {
        key: (words, before.get(key, ("", 0))[1], after.get(key, ("", 0))[1])
        for key, (words, _) in {**before, **after}.items()
    }
    lines = [
        _changed(f"{words}:", was, now, count) for words, was, now in both.values() if was != now
    ]
    facts: dict[str, Any] = {key: [was, now] for key, (_, was, now) in both.items()}
    equal = [words for words, was, now in both.values() if was and was == now]
    ports = [*changed_ports(first, second)]
    facts["drops_by_port"] = {name: [was, now] for name, was, now in ports}
    for name, was, now in ports[:_MOST_PORTS]:
        lines.append(_changed(f"drops at {clean(name, 60)}:", was, now, count))
    if len(ports) > _MOST_PORTS:
        lines.append(f"and other drops at {plural(len(ports) - _MOST_PORTS, 'further port')}")
    if equal:
        lines.append(f"Unchanged: {', '.join(name.removeprefix('– ') for name in equal)}.")
    result.facts["counts"] = facts
    result.add("What followed: counts", *lines)


def _flows(result: Story, first: Evidence, second: Evidence, names: list[str], top: int) -> None:
    """Add a section on the flows whose times changed most, with their parts in each run."""
    pairs = paired_flows(first, second).with_columns(
        change_us=pl.col("fct_us_after") - pl.col("fct_us")
    )
    alone = [each.flows.height - pairs.height for each in (first, second)]
    moved = pairs.filter(pl.col("change_us") != 0)
    result.facts["flows"] = {
        "paired": pairs.height,
        "changed": moved.height,
        "slower": moved.filter(pl.col("change_us") > 0).height,
        "only_in": alone,
    }
    if not pairs.height:
        return
    slower = moved.filter(pl.col("change_us") > 0).height
    lines = [
        f"Flows that both runs have (equal workload, job, purpose, hosts and order): "
        f"{count(pairs.height)}. In the second run, {count(slower)} of them took longer, "
        f"{count(moved.height - slower)} less time, {count(pairs.height - moved.height)} as long."
    ]
    if any(alone):
        lines.append(f"Flows only in one run: {count(alone[0])} and {count(alone[1])}.")
    listed = []
    order = pl.col("change_us").abs()
    for row in moved.sort([order, "flow"], descending=[True, False]).head(top).to_dicts():
        lines.append(
            f"{row['src']} → {row['dst']} ({row['purpose']} {row['order'] + 1} of "
            f"{_owner(row)}): "
            + _changed("", row["fct_us"] / 1e6, row["fct_us_after"] / 1e6, span).strip()
        )
        told = [
            flows.story(each, row[key]) for each, key in ((first, "flow"), (second, "flow_after"))
        ]
        lines += [
            f"– in {name}, flow {each.id}: {_parts(each.parts)}"
            for name, each in zip(names, told, strict=True)
        ]
        parts = [[{"what": p.what, "us": p.us} for p in each.parts] for each in told]
        listed.append({**row, "parts": parts})
    result.facts["flows"]["listed"] = listed
    result.add("What followed: flows that changed most", *lines)


def _owner(row: Mapping[str, Any]) -> str:
    """Return the job and the workload of a flow as text."""
    job = f"job {row['job']} of " if row["job"] is not None and row["job"] >= 0 else ""
    return f"{job}workload {row['workload']!r}"


def _parts(parts: list[Part]) -> str:
    """Return the parts of the time of a flow as one line of text."""
    return "; ".join(f"{span(part.us / 1e6)} {_IDEAL.sub('', part.what)}" for part in parts)


def _jobs(result: Story, first: Evidence, second: Evidence, names: list[str], top: int) -> None:
    """Add a section on jobs whose runtimes changed most, with changes of their critical paths."""
    pairs = paired_jobs(first, second).with_columns(
        change_s=pl.col("runtime_s_after") - pl.col("runtime_s")
    )
    if not pairs.height:
        return
    moved = pairs.filter(pl.col("change_s") != 0)
    slower = moved.filter(pl.col("change_s") > 0).height
    lines = [
        f"Jobs that both runs have (equal workload and number): {count(pairs.height)}. In the "
        f"second run, {count(slower)} of them took longer, {count(moved.height - slower)} less "
        f"time, {count(pairs.height - moved.height)} as long."
    ]
    listed = []
    order = pl.col("change_s").abs()
    for row in moved.sort([order, "job"], descending=[True, False]).head(top).to_dicts():
        before, after = (
            _path(jobs.story(each, str(row["job"]), row["workload"])) for each in (first, second)
        )
        lines.append(
            f"job {row['job']} ({clean(row['name'], 60)}) of workload {row['workload']!r}: "
            + _changed("", row["runtime_s"], row["runtime_s_after"], span).strip()
        )
        parts = {
            what: [before.get(what, 0.0), after.get(what, 0.0)] for what in {**before, **after}
        }
        ranked = sorted(parts, key=lambda what: -abs(parts[what][1] - parts[what][0]))
        for what in ranked:
            was, now = parts[what]
            if was != now:
                by = f"{'+' if now > was else '−'}{span(abs(now - was))}"
                lines.append(f"– {by}: {what} ({span(was)}, then {span(now)})")
        listed.append({**row, "path_s": parts})
    result.facts["jobs"] = {"paired": pairs.height, "changed": moved.height, "listed": listed}
    result.add("What followed: jobs that changed most, and their critical paths", *lines)


def _path(told: Story) -> dict[str, float]:
    """Return the seconds of each part of a job's critical path, by text without task numbers."""
    found: dict[str, float] = {}
    for part in told.parts:
        what = _ASSIGNED.sub("", _TASK.sub(r"\1", part.what))
        found[what] = found.get(what, 0.0) + part.us / 1e6
    return found


def _chance(
    result: Story, first: Evidence, second: Evidence, different: list[tuple[str, list[str]]]
) -> None:
    """Add a section on differences by chance, with a sweep file that compares several seeds.

    ``different`` has for each setting that differs its path, and its values in both results.
    """
    seeds = [each.result.summary.get("seed", "?") for each in (first, second)]
    varied = [path for path, _ in different if not path.startswith(_NO_AXIS)]
    if not varied:
        text = "No setting differs: the reason is another version of Eastwest or another input."
        if seeds[0] != seeds[1]:
            text = "Only the seeds differ: all differences are chance."
        result.add("Chance or setting", text)
        return
    whose = f"seed {seeds[0]}" if seeds[0] == seeds[1] else f"seeds {seeds[0]} and {seeds[1]}"
    lines = [
        f"One run of each is compared ({whose}). A small shift in time changes which packets are "
        "lost, so that differences of single flows, and of means over few of them, can be chance. "
        "A sweep over several seeds gives intervals."
    ]
    file = _sweep_file(first, second, different)
    if file:
        lines[-1] += " This file, read by eastwest sweep FILE.toml, compares both:"
        lines += file
    result.add("Chance or setting", *lines)


def _sweep_file(
    first: Evidence, second: Evidence, different: list[tuple[str, list[str]]]
) -> list[str]:
    """Return the lines of a sweep file that compares the settings of both results.

    The list is empty if a setting is absent in one result, or if a line would be too long.
    """
    both = [dict(values(tree(each.result))) for each in (first, second)]
    paths = [path for path, _ in different if not path.startswith(_NO_AXIS)]
    if any(ABSENT in pair for path, pair in different if path in paths):
        return []
    if not all(isinstance(each.get(path), str | int | float) for path in paths for each in both):
        return []
    scenario = str(first.result.path / "scenario.toml")
    rows = [[each[path] for path in paths] for each in both]
    lines = [
        "sweep = 1",
        f"scenario = {json.dumps(scenario)}",
        "seeds = 10",
        "[[axis]]",
        f"path = {json.dumps(paths)}",
        f"values = {json.dumps(rows)}",
    ]
    return [] if any(len(line) > _LONGEST_LINE for line in lines) else lines
