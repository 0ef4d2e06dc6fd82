"""Main results of a run as rows of text, for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eastwest import fidelity
from eastwest.deadlock import deadlock
from eastwest.notes import operations
from eastwest.results import Result, pick
from eastwest.units import clean, count, joules, percent, rate, size, span
from eastwest.views import timeouts
from eastwest.views.labels import plural
from eastwest.work_units import Unit, first_unit, window_words

#: Maximum number of lines on traffic classes below the latency of all packets.
_MOST_CLASSES = 2
#: Maximum number of settings of ``--set`` in a summary, and of characters of each.
_MOST_SETTINGS, _LONGEST_SETTING = 6, 100
#: Counters of ``tcp`` that the text shows, in this order; an event counts in one of them only.
_TCP = {
    "retransmits": "retransmit",
    "fast_recoveries": "fast recovery",
    "timeouts": "timeout",
    "ecn_reductions": "ecn reduction",
    "probes": "probe",
}
_MOST_CAUSES = 2
#: Measures of workloads that only the row of the workload shows.
_ONLY_HERE = ("exchange_us", "transaction_us", "rank_s")
#: Maximum number of workloads that have lines of their own in a summary.
_MOST_WORKLOADS = 5
#: Maximum number of measures, and of counters, of an application in a summary.
_MOST_MEASURES, _MOST_COUNTERS = 3, 8


def title(result: Result) -> str:
    """Return the name of a result's scenario and the seed: ``incast, seed 1``."""
    s = result.summary
    return f"{clean(str(s.get('scenario', '?')), 50)}, seed {s.get('seed', '?')}"


def changed(result: Result) -> list[str]:
    """Return the first six settings that ``--set`` changed, each as ``path = value``.

    If ``--set`` changed more settings, one more text has the number of the others.
    """
    found = result.summary.get("set")
    if not isinstance(found, list):
        return []
    said = [clean(str(setting), _LONGEST_SETTING) for setting in found[:_MOST_SETTINGS]]
    more = len(found) - len(said)
    return [*said, f"and {more} more in summary.json"] if more > 0 else said


def rows(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the main results of a run as (name, text): its cost, its workloads, its network."""
    s = result.summary
    if settings := changed(result):
        yield "set", "; ".join(settings)
    yield "simulated", f"{span(pick(s, 'simulated_s'))} in {span(pick(s, 'wall_s'))}"
    hops, cpu = pick(s, "packet_hops"), pick(s, "cpu_s")
    speed = hops / cpu if hops is not None and cpu else None
    memory = pick(s, "peak_rss_mb")
    yield (
        "speed",
        f"{count(speed)} packet-hops per CPU-s ({count(hops)} in {span(cpu)}), "
        f"{size(memory * 1e6 if memory else None)}",
    )
    yield from _rows(s, _failed_jobs(result), with_workloads=True)


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the main results of a run as (name, text), without its workloads and its cost.

    The cost is CPU time and memory, which differ even between runs of one scenario and seed.
    """
    if settings := changed(result):
        yield "set", "; ".join(settings)
    yield "simulated", span(pick(result.summary, "simulated_s"))
    yield from _rows(result.summary, _failed_jobs(result), with_workloads=False)


def warnings(result: Result) -> Iterator[tuple[str, str]]:
    """Yield (name, text) for each warning on a run: approximate mode and its error, a deadlock."""
    s = result.summary
    said_of = (("mode", fidelity.error(s)), ("", fidelity.warning(s)), ("deadlock", deadlock(s)))
    yield from ((name, clean(said, 400)) for name, said in said_of if said)


def notes(result: Result) -> list[str]:
    """Return the notes of a run, without control characters."""
    return [clean(str(note), 2000) for note in result.summary.get("notes", [])]


def _failed_jobs(result: Result) -> int:
    """Return the number of jobs that failed; 0 for results without this information."""
    if not pick(result.summary, "jobs", "count") or "failed" not in result.jobs.columns:
        return 0
    return result.jobs.filter(result.jobs["failed"].fill_null("") != "").height


def _rows(s: Mapping[str, Any], failed: int, with_workloads: bool) -> Iterator[tuple[str, str]]:
    workloads = s.get("workloads", {})
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
            scope = ", of the whole run" if "window" in s else ""
            yield "FCT", spread(s.get("flows"), "fct_us", 1e-6) + scope
    if with_workloads:
        yield from _workloads(s)
    if pick(s, "mpi", "ranks") and not any("rank_s" in own for own in workloads.values()):
        yield "MPI", _of_ranks(pick(s, "mpi", "runtime_s"), pick(s, "mpi", "ranks"))
    if pick(s, "streams", "count"):
        arrived, sent = pick(s, "streams", "frames_received"), pick(s, "streams", "frames_sent")
        got = rate(pick(s, "streams", "throughput_bps"))
        yield "frames", f"{count(arrived)} of {count(sent)} arrived, {got} in all"
    yield from _latency(s)
    yield "throughput", f"{rate(pick(s, 'throughput_bps'))} per host (payload of complete flows)"
    energy = pick(s, "energy_j", "total")
    of_on, of_ideal = pick(s, "energy_j", "of_always_on"), pick(s, "energy_j", "of_ideal")
    if of_on is not None and of_on < 1 and of_ideal is not None:
        whole = pick(s, "energy_j", "with_switches", "of_always_on")
        if whole is None or not pick(s, "energy_j", "switches", "total"):
            saved = f"{percent(of_on)} of always on"
        else:
            saved = f"links {percent(of_on)} of always on, with switches {percent(whole)}"
        yield "energy", f"{joules(energy)}, {saved}, {of_ideal:.3g} × ideal"
    yield "drops", tally(by_kind(s.get("drops")))
    yield "TCP", tcp_counters(s.get("tcp"))
    yield from _hosts(s)
    if isinstance(s.get("rocev2"), Mapping):
        sums = ("retransmits", "timeouts", "naks", "trimmed", "cnps")
        yield "RoCEv2", tally({key: pick(s, "rocev2", key) for key in sums}, len(sums))


def _hosts(s: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a row on the cores of hosts, if the hosts need time to process packets."""
    busy, lost = pick(s, "hosts", "busy_max"), pick(s, "hosts", "ring_drops")
    if busy is not None:
        lost_text = f", {count(lost)} frames lost in full rings of hosts" if lost else ""
        yield "hosts", f"the busiest core works {percent(busy)} of the time{lost_text}"


def _of_ranks(runtime_s: float | None, ranks: float | None) -> str:
    """Return the runtime of an MPI program as text: ``runtime 1.2 s of 16 ranks``."""
    return f"runtime {span(runtime_s)} of {plural(ranks or 0, 'rank')}"


@dataclass(frozen=True)
class Measured:
    """Durations of a workload's units of work, such as exchanges.

    The units are the units in the measuring window, or the units that ran while another workload
    was active.
    """

    workload: str
    #: The other workload (``W`` or ``W/purpose``) that was active; empty for all units in the
    #: measuring window.
    during: str
    unit: Unit
    #: ``count``, ``mean``, percentiles and ``max`` of the durations, in µs or s as the name of the
    #: measure ends (``unit.name``).
    found: Mapping[str, float]

    def text(self) -> str:
        """Return the number of units and the percentiles of their durations as text."""
        if self.unit.name == "rank_s":
            return _of_ranks(self.found["max"], self.found["count"])
        number = plural(self.found["count"], self.unit.noun)
        if self.found["count"] == 1:
            return f"{number}: {self.shown('max')}"
        return f"{number}: {spread({'of': {**self.found, 'mean': None}}, 'of', self._unit_s)}"

    def shown(self, statistic: str) -> str:
        """Return the statistic ``p50``, ``max`` … of the durations as text with its unit."""
        return span(self.found[statistic] * self._unit_s)

    @property
    def _unit_s(self) -> float:
        return 1e-6 if self.unit.name.endswith("_us") else 1.0


def measured(s: Mapping[str, Any]) -> Iterator[Measured]:
    """Yield the durations of each workload's units of work, from the summary ``s`` of a run.

    For each workload, the first entry is about all units; other entries are about the units while
    another workload was active.
    """
    for name, measures in s.get("workloads", {}).items():
        unit = first_unit(measures)
        if unit is None:
            continue
        yield Measured(name, "", unit, measures[unit.name])
        for other, beside in s.get("while", {}).items():
            if unit.name in beside.get(name, {}) and unit.name != "rank_s":
                yield Measured(name, other, unit, beside[name][unit.name])


def _workloads(s: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (name, text) for each workload: durations of its units, also while others were active.

    A single workload of jobs, rounds or flows has no row here, because other rows of the summary
    show it. These rows are about the whole run, so with a measuring window there is a row here too.
    """
    if "window" in s:
        yield "window", window_words(s["window"])
    workloads = list(dict.fromkeys([*s.get("workloads", {}), *s.get("applications", {})]))
    alone = len(workloads) < 2 and "window" not in s
    for name in workloads[:_MOST_WORKLOADS]:
        said = []
        for each in measured(s):
            if each.workload == name and not (alone and each.unit.name not in _ONLY_HERE):
                during = f"while {clean(each.during, 30)}, " if each.during else ""
                said.append(f"{during}{each.text()}")
        said += _application(s.get("applications", {}).get(name, {}))
        for number, text in enumerate(said):
            yield (clean(name, 12) if number == 0 else "", text)
    if len(workloads) > _MOST_WORKLOADS:
        yield "", f"and {len(workloads) - _MOST_WORKLOADS} more workloads in summary.json"


def _application(own: Mapping[str, Any]) -> list[str]:
    """Return the measures and counters of an application as text.

    If not all operations are done, the first line has their numbers.
    """
    said = []
    for measure, found in own.items():
        if measure != "counters" and isinstance(found, Mapping) and found.get("count"):
            times = spread({"us": {**found, "mean": None}}, "us", 1e-6)
            name = clean(measure.removesuffix("_us"), 30)
            said.append(f"{name} ({count(found['count'])} times): {times}")
    del said[_MOST_MEASURES:]
    counters = own.get("counters", {})
    shown = [f"{clean(each.replace('_', ' '), 30)} {count(n)}" for each, n in counters.items()]
    if len(shown) > _MOST_COUNTERS:
        shown[_MOST_COUNTERS:] = [f"and {len(shown) - _MOST_COUNTERS} more counters"]
    said += [", ".join(shown)] if shown else []
    found = operations.of(own)
    return said if found is None or found.is_whole else [_not_done(found, own), *said]


def _not_done(found: operations.Operations, own: Mapping[str, Any]) -> str:
    """Return the numbers of operations, and of requests without a reply, as text."""
    parts = [f"{count(found.done)} of {count(found.planned)} operations done"]
    numbers = {
        "failed": found.failed,
        "not complete": found.unfinished,
        "not begun": found.not_begun,
    }
    parts += [f"{count(number)} {word}" for word, number in numbers.items() if number]
    none, sent = pick(own, "requests", "unanswered"), pick(own, "requests", "sent")
    parts += [f"{count(none)} of {count(sent)} requests without reply"] if none else []
    return ", ".join(parts)


def spread(tree: Any, stem: str, unit_s: float) -> str:
    """Return mean, median, tail and maximum of a time as text, as far as the summary has them.

    The numbers are in ``tree[stem]``, or in ``tree`` with names such as ``runtime_s_p50`` for the
    ``stem`` ``runtime_s``; ``unit_s`` is the length of their unit in s (1e-6 for µs).
    """
    nested = tree.get(stem) if isinstance(tree, Mapping) else None
    words = (("mean", "mean"), ("p50", "median"), ("p99", "p99"), ("p999", "p99.9"), ("max", "max"))
    parts = []
    for key, word in words:
        value = pick(nested, key) if nested is not None else pick(tree, f"{stem}_{key}")
        if value is not None:
            parts.append(f"{word} {span(value * unit_s)}")
    return ", ".join(parts) or "none"


def without_packets(s: Mapping[str, Any]) -> str:
    """Return the reason why a run has no latency of packets; ``s`` is its summary."""
    return "packets are not simulated" if fidelity.is_approximate(s) else "no packet arrived"


def _latency(s: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (name, latency as text) for all packets, and for each traffic class if several.

    ``s`` is the summary.
    """
    tree = s.get("latency_us")
    if not isinstance(tree, Mapping):
        return
    if pick(tree, "count") == 0:
        yield "latency", without_packets(s)
        return
    tree = {**tree, "max": None}  # the maximum is left out, because the line would be too long
    yield "latency", spread({"us": tree}, "us", 1e-6)
    classes = tree.get("classes", tree.get("by_class"))
    if isinstance(classes, Mapping) and len(classes) > 1:
        # A long summary must fit a small terminal: the line on further classes replaces a class.
        shown = _MOST_CLASSES if len(classes) <= _MOST_CLASSES else _MOST_CLASSES - 1
        for name in list(classes)[:shown]:
            yield (
                f"  {clean(str(name), 12)}",
                spread({"us": {**classes[name], "max": None}}, "us", 1e-6),
            )
        if more := len(classes) - shown:
            yield "  …", f"{plural(more, 'more class', 'more classes')}: latency_us in summary.json"


def tcp_counters(tree: Any) -> str:
    """Return the TCP counters above 0 as text, with the causes of timeouts in parentheses.

    ``tree`` is ``tcp`` of the summary.
    """
    parts = []
    for key, one in _TCP.items():
        value = pick(tree, key)
        if not value:
            continue
        part = plural(value, one, key.replace("_", " "))
        causes = tree.get("timeout_causes") if key == "timeouts" else None
        if isinstance(causes, Mapping) and any(causes.values()):
            named = {timeouts.short(str(cause)): n for cause, n in causes.items()}
            part += f" ({tally(named, _MOST_CAUSES, 'causes')})"
        parts.append(part)
    return ", ".join(parts) or "none"


def by_kind(drops: Any) -> dict[str, float]:
    """Return numbers of drops by kind of packet and cause, such as ``data (early)``.

    ``drops`` is ``drops`` of the summary.
    """
    result: dict[str, float] = {}
    for path, value in leaves(drops):
        name = path[-1] if len(path) < 2 else f"{path[-1]} ({path[0]})"
        result[name] = result.get(name, 0) + value
    return result


def tally(tree: Any, most: int = 3, noun: str = "kinds") -> str:
    """Return the ``most`` largest counters of a nested mapping as text: ``9 data, 2 ack``.

    A counter's name consists of its keys; counters of 0 are left out. If more than ``most`` + 1
    remain, the sum of the others is last: ``7 in 2 other kinds`` for two counters with the sum 7.
    """
    counted = [(" ".join(path).replace("_", " "), value) for path, value in leaves(tree) if value]
    counted.sort(key=lambda pair: -pair[1])
    most += len(counted) == most + 1
    parts = [f"{count(value)} {clean(name, 30)}" for name, value in counted[:most]]
    if rest := counted[most:]:
        parts.append(f"{count(sum(value for _, value in rest))} in {len(rest)} other {noun}")
    return ", ".join(parts) or "none"


def leaves(tree: Any, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield (keys from the outermost to the innermost, number) for all numbers of a mapping."""
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from leaves(value, (*prefix, str(key)))
    elif isinstance(tree, (int, float)) and not isinstance(tree, bool):
        yield prefix, float(tree)
