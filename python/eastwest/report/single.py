"""Page about one result."""

from __future__ import annotations

import shlex
from typing import Any

from eastwest import units
from eastwest.plot.latency import by_size
from eastwest.report import (
    energy,
    load,
    parts,
    pauses,
    slow,
    spread,
    throughput,
    topology,
    verdict,
    words,
    work,
)
from eastwest.report.draw import Chart
from eastwest.report.page import render
from eastwest.report.tables import Facts, shown
from eastwest.results import Result, pick

#: Most characters of a scenario in the page; longer ones (with graphs in them) are cut.
_MOST_SCENARIO = 400_000


def title_of(result: Result) -> str:
    """Return the name of a result's scenario."""
    return shown(result.summary.get("scenario", result.path.name), 100)


def single(result: Result) -> str:
    """Return the page about one result."""
    facts = Facts(result)
    result = facts.result
    loads = load.LinkLoad(facts) if facts.samples.height and facts.links.height else None
    drawing = topology.drawing(facts, loads) if facts.links.height else None
    over_time = load.charts(facts)
    if loads is not None:
        over_time.insert(0, loads.heat())
    paused = pauses.heat(facts)
    if paused is not None:
        over_time.append(paused)
    named = [("", facts)]
    curves = {chart.name: chart for chart in spread.charts(named)}
    job_curves = _take(curves, "job-runtimes")
    utilisation = spread.busy_links(facts)
    waited = spread.waits(facts)
    split = parts.parts(facts)
    sections = {
        "work": [*work.charts(facts), *job_curves],
        "load": over_time,
        "energy": energy.charts(facts),
        "network_narrow": [utilisation] if utilisation else [],
        "flow_charts": [
            *throughput.charts(facts),
            *_take(curves, "flow-completion", "slowdown-by-size"),
            *([split] if split else []),
        ],
        "packet_charts": [*_take(curves, "packet-latency"), *([waited] if waited else [])],
    }
    for charts in sections.values():
        _fill_lines(charts)
    drawn = [chart for charts in sections.values() for chart in charts]
    return render(
        "single.html.j2",
        {
            "charts": {chart.name: chart.script() for chart in drawn},
            "topology": drawing["script"] if drawing else None,
        },
        title=title_of(result),
        seed=result.summary.get("seed", "?"),
        version=shown(result.summary.get("version", "?"), 40),
        digest=shown(result.digest, 128),
        span=units.span(pick(result.summary, "simulated_s")),
        wall=units.span(pick(result.summary, "wall_s")) if "wall_s" in result.summary else "",
        verdicts=verdict.verdicts(facts),
        headlines=words.headlines(result),
        **sections,
        fabric_drawing=drawing,
        busiest_now=_busiest(facts),
        drop_kinds=list(words.DROP_KINDS.values()),
        drops=words.drop_rows(result),
        causes=words.drop_causes(result),
        marked=words.marked(result),
        faults=words.faults(result),
        busiest=words.busiest_links(result),
        paused=pauses.rows(facts),
        energy_rows=energy.rows(facts),
        slow=slow.rows(facts),
        events_note=_events_note(facts),
        purposes=words.purpose_rows(result),
        sizes=_sizes(result),
        latency=words.latency_rows(result),
        fabric=words.fabric(result),
        workload=words.workload(result),
        notes=_notes(facts),
        scenario=_cut(result.scenario),
        rerun=f"eastwest run {shlex.quote(str(result.path / 'scenario.toml'))}",
        thinned=_thinned(facts),
    )


def _take(curves: dict[str, Chart], *names: str) -> list[Chart]:
    return [curves[name] for name in names if name in curves]


def _fill_lines(charts: list[Chart]) -> None:
    """Widen the last of an odd number of narrow charts, so that it fills its line."""
    narrow = [chart for chart in charts if not chart.wide]
    if len(narrow) % 2 and narrow[-1].name != "link-utilisation":
        narrow[-1].wide = True


def _busiest(facts: Facts) -> list[tuple[str, str, str, str]]:
    """Return the busiest links of the whole run, for the list beside the drawing."""
    top = facts.links.sort(["utilisation", "link"], descending=[True, False]).head(8)
    rows = []
    for row in top.iter_rows(named=True):
        used = row["utilisation"] or 0.0
        width = f"{100 * min(max(used, 0.0), 1.0):.1f}"
        rows.append((shown(row["name"]), units.percent(used), width, units.count(row["drops"])))
    return rows


def _events_note(facts: Facts) -> str:
    """Return a sentence on what the events of flows do not cover, or an empty text."""
    if facts.flows["connection"].null_count() == facts.flows.height and facts.flows.height:
        return "This result is of an older format and has no events: counters only."
    left_out = pick(facts.result.summary, "event_log", "left_out") or 0
    if left_out:
        return (
            f"{units.count(left_out)} later events were not recorded (measure.events), so a "
            "story may lack its end."
        )
    if not facts.events.height and int(facts.links["drops"].sum() or 0):
        return "Events were not recorded in this run: counters only."
    return ""


def _notes(facts: Facts) -> list[str]:
    """Return the notes of the run, and a note on tables that could not be read."""
    notes = facts.result.summary.get("notes", [])
    said = [shown(note, 500) for note in notes] if isinstance(notes, list) else []
    return said + [
        f"{units.count(count)} rows of the table {shown(name, 30)} hold values that are missing "
        "or no numbers; they are left out here."
        for name, count in facts.result.left_out.items()
    ]


def _thinned(facts: Facts) -> str:
    """Return a sentence on rows of tables that are not in the page, or an empty text."""
    return (
        f"Curves and series are thinned to what a screen can show; the result folder has every "
        f"row ({units.count(facts.flows.height)} flows, {units.count(facts.tasks.height)} tasks, "
        f"{units.count(facts.samples.height)} samples of links, "
        f"{units.count(facts.events.height)} events)."
    )


def _cut(scenario: str) -> str:
    if len(scenario) <= _MOST_SCENARIO:
        return scenario
    return scenario[:_MOST_SCENARIO] + "\n# … cut here; scenario.toml in the folder is whole\n"


def _sizes(result: Result) -> list[list[str]]:
    rows: list[list[str]] = []
    for row in by_size(result).iter_rows(named=True):
        typed: dict[str, Any] = row
        rows.append(
            [
                typed["size"],
                units.count(typed["flows"]),
                units.span(typed["fct_us_p50"] / 1e6),
                units.span(typed["fct_us_p99"] / 1e6),
                f"{units.count(typed['slowdown_p50'])} ×",
                f"{units.count(typed['slowdown_p99'])} ×",
            ]
        )
    return rows
