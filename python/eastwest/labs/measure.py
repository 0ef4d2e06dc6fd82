"""Runs of the scenarios of labs: measured answers, and whether a value of a setting is right."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fractions import Fraction

from eastwest import core, shipped
from eastwest.errors import in_one_line
from eastwest.goals import evaluate, form
from eastwest.labs.sheet import Band, Question, Run, Trial
from eastwest.results import frame
from eastwest.run import Setting, as_overrides, load_source, measured
from eastwest.sweep.metrics import metrics_in
from eastwest.sweep.values import Bound
from eastwest.sweep.words import full, shown, unit_of

#: Unit of the values of settings that are passed to the simulator: the smallest unit of the kind.
_SMALLEST = {"time": "ps", "rate": "bit/s", "size": "B", "packets": "packets", "share": "%"}


@functools.lru_cache(maxsize=256)
def _metrics(
    scenario: str, settings: tuple[tuple[str, Setting], ...], seed: int
) -> dict[str, float]:
    """Return the metrics of a run, and numbers of the table ``links`` as ``links.LINK.COLUMN``.

    The scenario is the shipped one, also if the working directory has a file of this name. Results
    are kept, because a class gives equal answers to a question.
    """
    path = shipped.find(scenario)
    assert path is not None, scenario
    raw, summary = measured(load_source(path), as_overrides(dict(settings)), seed)
    found = metrics_in(summary)
    for row in frame(raw["tables"]["links"]).iter_rows(named=True):
        link = f"{row['src']}->{row['dst']}"
        for column, value in row.items():
            if isinstance(value, (int, float)):
                found[f"links.{link}.{column}"] = float(value)
    return found


def metrics_of(scenario: str, settings: Mapping[str, Setting], seed: int) -> dict[str, float]:
    """Return the metrics of a run, and numbers of the table ``links`` as ``links.LINK.COLUMN``."""
    return _metrics(scenario, tuple(settings.items()), seed)


def answer(question: Question, seed: int) -> Fraction:
    """Return the measured answer to a question with a number, in the smallest unit of its kind.

    ``seed`` is the seed of the runs for which the question names none.
    """
    assert question.band is not None
    each = [_number(run, question.band, seed) for run in question.runs]
    if question.combine == "ratio":
        ratio = each[0] / each[1]
        return 100 * ratio if question.band.kind == "share" else ratio
    return each[0] - each[1] if question.combine == "difference" else each[0]


def _number(run: Run, band: Band, seed: int) -> Fraction:
    metrics = metrics_of(run.scenario, run.set, seed if run.seed is None else run.seed)
    name = full(run.metric, metrics)
    kind, scale = unit_of(name)
    of_share = band.kind == "share" and not kind
    return Fraction(metrics[name]) * (100 if of_share else scale)


def setting(bound: Bound) -> Setting:
    """Return a value of a setting in the smallest unit of its kind, as the simulator reads it."""
    if bound.kind in _SMALLEST:
        number = bound.number if bound.kind == "share" else round(bound.number)
        return (
            f"{float(number):g} %" if bound.kind == "share" else f"{number} {_SMALLEST[bound.kind]}"
        )
    return int(bound.number) if bound.number.denominator == 1 else float(bound.number)


def missed(trial: Trial, bound: Bound) -> str:
    """Return which goal a value of a setting misses, as text; empty if it meets all goals."""
    goals, problems = form.read(trial.goal)
    assert not problems, problems
    for seed in trial.seeds:
        settings = {**trial.set, trial.setting: setting(bound)}
        try:
            metrics = metrics_of(trial.scenario, settings, seed)
        except (core.scenario_error(), core.run_error()) as error:
            return f"the scenario cannot run with this value: {in_one_line(error, 1)}"
        for entry in evaluate.of_run(goals, metrics):
            if entry["met"] is not True:
                _, name, write = shown(entry["metric"])
                value = "absent" if entry["value"] is None else write(entry["value"])
                return f"{name} is {value} with seed {seed}; the goal is {entry['goal']}"
    return ""
