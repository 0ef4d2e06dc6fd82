"""HTML page about one result."""

from __future__ import annotations

import shlex

from eastwest import units
from eastwest.report import (
    applications,
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
from eastwest.report.draw import Chart, fill_lines
from eastwest.report.page import render
from eastwest.results import Result, pick
from eastwest.views import goals, summary
from eastwest.views.facts import Facts
from eastwest.views.labels import agree, as_sentence, plural, shown
from eastwest.views.latency import by_size
from eastwest.views.links import LinkLoad

#: Maximum number of characters of the scenario in a page; longer scenarios are cut.
_MOST_SCENARIO = 400_000
#: Maximum number of columns of a table that fits into half the width of the page.
_MOST_NARROW = 7


def title_of(result: Result) -> str:
    """Return the title of a result's page: the name of the scenario, or of the result folder."""
    return shown(result.summary.get("scenario", result.path.name), 100)


def single(result: Result, command: str | None = None) -> str:
    """Return the HTML page about one result.

    ``command`` is the command line that repeats the run; by default it runs the result folder.
    """
    facts = Facts(result)
    result = facts.result
    loads = LinkLoad(facts) if facts.samples.height and facts.links.height else None
    drawing = topology.drawing(facts, loads) if facts.links.height else None
    over_time = load.charts(facts)
    if loads is not None:
        over_time.insert(0, load.heat(loads))
    drawn = spread.charts([("", facts)])
    curves = {chart.name: chart for chart in drawn}
    take = curves.get
    found: dict[str, list[Chart | None]] = {
        "work": [*work.charts(facts), take("job-runtimes")],
        "application_charts": [c for c in drawn if c.name.startswith("application-")],
        "load": [*over_time, pauses.heat(facts)],
        "energy": [*energy.charts(facts)],
        "network_narrow": [spread.busy_links(facts)],
        "flow_charts": [
            *throughput.charts(facts),
            *(chart for chart in drawn if chart.name.startswith("workload-")),
            *(take("flow-completion"), take("slowdown-by-size"), parts.parts(facts)),
        ],
        "packet_charts": [take("packet-latency"), spread.waits(facts)],
    }
    sections = {name: [c for c in charts if c is not None] for name, charts in found.items()}
    drops = words.drop_table(result)
    many = len(drops[0]) > _MOST_NARROW
    for charts in sections.values():
        fill_lines(charts, keep="" if many else "link-utilisation")
    slowest = slow.rows(facts)
    verdicts = verdict.verdicts(facts)
    return render(
        "single.html.j2",
        [chart for charts in sections.values() for chart in charts],
        drawing["script"] if drawing else None,
        title=title_of(result),
        seed=result.summary.get("seed", "?"),
        changed=summary.changed(result),
        version=shown(result.summary.get("version", "?"), 40),
        digest=shown(result.digest, 128),
        span=units.span(pick(result.summary, "simulated_s")),
        wall=units.span(pick(result.summary, "wall_s")) if "wall_s" in result.summary else "",
        verdicts=[*goals.verdicts(result.summary), *verdicts],
        headlines=words.headlines(result),
        workloads=words.workload_rows(result),
        application_numbers=applications.number_rows(result),
        application_measures=applications.measure_rows(result),
        application_counters=applications.counter_rows(result),
        **sections,
        fabric_drawing=drawing,
        busiest_now=_busiest(facts),
        drops=drops,
        drops_wide=many or not sections["network_narrow"],
        lost=words.carried(result)[1] > 0,
        causes=words.drop_causes(result),
        marked=words.marked(result),
        faults=words.faults(result),
        busiest=words.busiest_links(result),
        paused=pauses.rows(facts),
        memory=pauses.memory_rows(result),
        energy_rows=energy.rows(facts),
        slow=slowest,
        slow_notes=[n for n in (slow.without_loss(slowest), _events_note(facts)) if n],
        purposes=words.purpose_rows(result),
        sizes=_sizes(result),
        latency=words.latency_rows(result),
        fabric=words.fabric(result),
        workload=words.workload(result),
        notes=_notes(facts, {sentence for _, sentence in verdicts}),
        scenario=_cut(result.scenario),
        rerun=command or f"eastwest run {shlex.quote(str(result.path / 'scenario.toml'))}",
        thinned=_thinned(facts),
    )


def _busiest(facts: Facts) -> list[tuple[str, str, str, str]]:
    """Return (link, utilisation, width of a bar in per cent, drops) of the eight busiest links.

    All four are texts, for the list beside the drawing.
    """
    top = facts.links.sort(["utilisation", "link"], descending=[True, False]).head(8)
    rows = []
    for row in top.iter_rows(named=True):
        used = row["utilisation"] or 0.0
        width = f"{100 * min(max(used, 0.0), 1.0):.1f}"
        rows.append((shown(row["name"]), units.percent(used), width, units.count(row["drops"])))
    return rows


def _events_note(facts: Facts) -> str:
    """Return a sentence on events of flows that the result lacks; empty if it lacks none."""
    if facts.flows["connection"].null_count() == facts.flows.height and facts.flows.height:
        return (
            "This result has an older format without events of flows: the table shows "
            "counters only."
        )
    left_out = pick(facts.result.summary, "event_log", "left_out") or 0
    if left_out:
        return (
            f"{units.count(left_out)} later events were not recorded (limit: "
            "measure.events), so the description of a flow may lack its end."
        )
    if not facts.events.height and int(facts.links["drops"].sum() or 0):
        return "Events were not recorded in this run: the table shows counters only."
    return ""


def _notes(facts: Facts, above: set[str]) -> list[str]:
    """Return notes of the run, and a note for each table with missing or invalid values.

    Notes in ``above``, the sentences at the top of the page, are left out.
    """
    said = [note for note in summary.notes(facts.result) if as_sentence(note) not in above]
    return said + [
        f"{plural(count, 'row')} of the table {shown(name, 30)} {agree(count, 'has', 'have')} "
        f"missing or invalid values; this page leaves {agree(count, 'it', 'them')} out."
        for name, count in facts.result.left_out.items()
    ]


def _thinned(facts: Facts) -> str:
    """Return a sentence: that curves are thinned, and how many rows tables of the result have."""
    return (
        f"Curves and series are thinned to what a screen can show; the result folder has every "
        f"row ({plural(facts.flows.height, 'flow')}, {plural(facts.tasks.height, 'task')}, "
        f"{plural(facts.samples.height, 'sample')} of links, "
        f"{plural(facts.events.height, 'event')})."
    )


def _cut(scenario: str) -> str:
    if len(scenario) <= _MOST_SCENARIO:
        return scenario
    return scenario[:_MOST_SCENARIO] + "\n# … cut here; scenario.toml in the folder is complete\n"


def _sizes(result: Result) -> list[list[str]]:
    return [
        [
            row["size"],
            units.count(row["flows"]),
            *(units.span(row[f"fct_us_{q}"] / 1e6) for q in ("p50", "p99")),
            *(f"{units.count(row[f'slowdown_{q}'])} ×" for q in ("p50", "p99")),
        ]
        for row in by_size(result).iter_rows(named=True)
    ]
