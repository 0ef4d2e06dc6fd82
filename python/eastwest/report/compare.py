"""Page that compares several results: the settings that differ, metrics, and charts."""

from __future__ import annotations

from collections.abc import Sequence

from eastwest import fidelity, formats
from eastwest.report import load, spread
from eastwest.report.draw import fill_lines
from eastwest.report.page import render
from eastwest.report.single import title_of
from eastwest.report.triangle import triangle
from eastwest.results import Result, pick
from eastwest.sweep import seeds, words
from eastwest.sweep.metrics import scalars
from eastwest.views import goals, transports
from eastwest.views.facts import Facts
from eastwest.views.labels import as_sentence, plural, shown
from eastwest.views.metrics import Metric, change, made, told
from eastwest.views.settings import ABSENT, differences, settings

_MOST_LABEL = 40
#: Maximum number of settings that a sentence at the top names; the table has all.
_MOST_NAMED = 6
#: Maximum number of settings that differ up to which the page shows their table unfolded.
_MOST_OPEN = 30


def shown_metrics(results: Sequence[Result]) -> list[Metric]:
    """Return the metrics on the page: first those of workloads, then those of the whole run."""
    there = {name for result in results for name, _ in scalars(result.summary)}
    of_all = told(pick(result.summary, "energy_j", "of_always_on") for result in results)
    own = dict.fromkeys([*words.of_workloads(there), *words.of_applications(there)])
    ran = {name for result in results for name in transports.used(result)}
    idle = {key for key, name in transports.NAMES.items() if name not in ran}
    return [*(made(name) for name in own), *(m for m in of_all if m.path[0] not in idle)]


def labels(results: Sequence[Result], different: list[tuple[str, list[str]]]) -> list[str]:
    """Return a different name for each result: scenario and seed, if these suffice.

    Otherwise, the names are the settings that differ (up to three), or the folders. ``different``
    has these settings: path, and value in each result.
    """
    names = [f"{title_of(r)[:_MOST_LABEL]}, seed {r.summary.get('seed', '?')}" for r in results]
    if len(set(names)) < len(names) and 0 < len(different) <= 3:
        names = [
            ", ".join(
                f"{_short(path)} = {values[place]}"
                for path, values in different
                if values[place] != ABSENT
            )
            or f"result {place + 1}"
            for place in range(len(results))
        ]
    if len(set(names)) < len(names) or max(len(name) for name in names) > 2 * _MOST_LABEL:
        names = [shown(r.path, 100)[-_MOST_LABEL:] for r in results]
    if len(set(names)) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names, 1)]
    return names


def _short(path: str) -> str:
    """Return the last part of the path of a setting, after the name of a workload or class."""
    first, *parts = path.split(".")
    named = first in {"workload", "class"} and len(parts) > 1
    return f"{parts[0]}.{parts[-1]}" if named else [first, *parts][-1]


def comparison(results: Sequence[Result]) -> str:
    """Return the HTML page that compares several results."""
    different = differences(results)
    changed, lone = _parted(different)
    names = labels(results, changed or different)
    named = [(name, Facts(result)) for name, result in zip(names, results, strict=True)]
    charts = spread.charts(named)
    fill_lines(charts)
    over_time = load.compared(named[: spread.MOST_CURVES])
    return render(
        "comparison.html.j2",
        [*charts, *over_time],
        title=f"{len(results)} results compared",
        names=names,
        sentences=[*goals.compared(results, names), *_sentences(results, names, different)],
        metrics=metrics(results),
        differences=changed,
        lone=lone,
        many_differences=len(different) > _MOST_OPEN,
        charts=charts,
        over_time=over_time,
        trade=triangle(results, names),
        left_out=max(0, len(results) - spread.MOST_CURVES),
        folder_rows=[
            [name, shown(result.path, 300), shown(result.digest, 64)[:12]]
            for name, result in zip(names, results, strict=True)
        ],
    )


#: A setting by path, with its value in each result.
_Setting = tuple[str, list[str]]


def _parted(different: list[_Setting]) -> tuple[list[_Setting], list[_Setting]]:
    """Return two lists: settings with different values, and settings that some results lack."""
    lone = [row for row in different if ABSENT in row[1]]
    return [row for row in different if row not in lone], lone


def _sentences(
    results: Sequence[Result], names: list[str], different: list[tuple[str, list[str]]]
) -> list[str]:
    """Return the sentences at the top of the page: settings that differ, and headline metrics.

    For two results, the sentence on a metric has both values; for more, it has the lowest and the
    highest value. Other sentences are warnings about the comparison: different versions of
    Eastwest, flow-level results, different seeds.
    """
    said = []
    writers = dict.fromkeys(shown(formats.writer(r.summary), 80) for r in results)
    if len(writers) > 1:
        said.append(
            f"The results were written by different versions ({'; '.join(writers)}): "
            "differences may come from the program instead of the settings."
        )
    flows = [n for r, n in zip(results, names, strict=True) if fidelity.is_approximate(r.summary)]
    if flows:
        whose = "All are" if len(flows) == len(results) else f"{', '.join(flows[:_MOST_NAMED])}:"
        first = next(r for r in results if fidelity.is_approximate(r.summary))
        said.append(f"{whose} {shown(fidelity.error(first.summary), 400)}.")
    changed, lone = _parted(different)
    if changed:
        differ = plural(len(changed), "setting differs", "settings differ")
        said.append(f"{differ}: {_listed(changed)}")
    if lone:
        one = (
            "setting that only one result has"
            if len(results) == 2
            else "setting that some results lack"
        )
        many = one.replace("setting", "settings", 1)
        said.append(f"{plural(len(lone), one, many)}: {_listed(lone)}")
    if not different:
        said.append("All settings are the same.")
    if len({result.digest for result in results}) == 1:
        return [
            *said,
            "All results have the same digest: exactly the same events happened in each run.",
        ]
    alone = seeds.of_results([settings(r) for r in results], [r.digest for r in results])
    if alone:
        said.append(as_sentence(alone))
    elif [path for path, _ in changed] == ["seed"] and not lone:
        said.append("Only the seed differs, so all differences are due to chance.")
    for metric in shown_metrics(results):
        if metric.headline:
            said.append(_headline(metric, [metric.of(result) for result in results], names))
    return [sentence for sentence in said if sentence]


def _listed(settings: list[_Setting]) -> str:
    """Return the first six settings with their values in each result, as the end of a sentence."""
    texts = [f"{path} ({' / '.join(values)})"[:120] for path, values in settings[:_MOST_NAMED]]
    rest = len(settings) - _MOST_NAMED
    return "; ".join(texts) + (f"; and {rest} more." if rest > 0 else ".")


def _headline(metric: Metric, values: list[float | None], names: list[str]) -> str:
    known = [(v, n) for v, n in zip(values, names, strict=True) if v is not None]
    if len(known) < 2 or len({v for v, _ in known}) == 1:
        return ""
    if len(values) == 2:
        first, second = known[0][0], known[1][0]
        by = f" ({change(second / first)})" if first else ""
        return f"{metric.title}: {metric.write(first)}, then {metric.write(second)}{by}."
    low, high = min(known), max(known)
    return (
        f"{metric.title}: from {metric.write(low[0])} ({low[1]}) to "
        f"{metric.write(high[0])} ({high[1]})."
    )


def metrics(results: Sequence[Result]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return (title of the metric, cells) for each metric; a cell is the text for one result.

    A cell has the value, and the change against the first result.
    """
    rows = []
    for metric in shown_metrics(results):
        first, *others = values = [metric.of(result) for result in results]
        if any(value is not None for value in values):
            changes = [
                change(v / first) if v is not None and first and v != first else "" for v in others
            ]
            texts = [metric.write(value) for value in values]
            rows.append((metric.title, list(zip(texts, ["", *changes], strict=True))))
    return rows
