"""Functions that check and run scenarios from Python.

A scenario is named by the path of its file, by a result folder (which can be run again from
itself), by the name of a shipped scenario, or given as TOML text.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest import core, notes, shipped
from eastwest.errors import InputError
from eastwest.few_flows import few_flows
from eastwest.files import is_folder
from eastwest.interrupts import FinishedInterrupt
from eastwest.memory import Watched
from eastwest.notes import host_cores, no_overlap
from eastwest.progress import RunWords, watched
from eastwest.results import Result, TargetFolder, frame, pick, write_result
from eastwest.unfinished import Keeper
from eastwest.units import count, span
from eastwest.work_units import first_unit, window_words

if TYPE_CHECKING:
    from eastwest import by_workload
    from eastwest.mechanisms.load import Mechanism

#: Value of a setting in the argument ``set``: a TOML value, or text as on the command line.
Setting = str | int | float | bool


@dataclass(frozen=True)
class Source:
    """Text of a scenario, and the folder to which file names in this text are relative."""

    text: str
    base_dir: Path
    label: str

    @property
    def name(self) -> str:
        """Name of the scenario for progress lines: name of its file or of its result folder."""
        path = Path(self.label)
        return self.base_dir.name if path.name == "scenario.toml" else path.stem


#: Override that removes the goals of a scenario.
NO_GOALS = ("goal", "{}")
_GOAL = re.compile(r"""^\s*\[?\s*["']?goal\b""", re.MULTILINE)


def may_have_goals(source: Source, overrides: core.Overrides) -> bool:
    """Whether a scenario with these overrides may have goals: a test without parsing the TOML."""
    if NO_GOALS in overrides:
        return False
    named = any(path.partition(".")[0].strip() == "goal" for path, _ in overrides)
    return named or _GOAL.search(source.text) is not None


def load_source(scenario: str | Path) -> Source:
    """Return the scenario in a file, in a result folder, with a shipped name, or in a TOML text.

    A text with a line break is TOML. Raises ``FileNotFoundError``, which lists the shipped
    scenarios, where nothing has the name ``scenario``.
    """
    if isinstance(scenario, str) and "\n" in scenario:
        return Source(scenario, Path.cwd(), "text")
    path = Path(scenario)
    if is_folder(path) and (path / "scenario.toml").is_file():
        path = path / "scenario.toml"
    if not path.is_file():
        found = shipped.find(str(scenario))
        if found is None:
            known = ", ".join(shipped.names()) or "none"
            raise FileNotFoundError(
                f"no scenario file {str(scenario)!r}; shipped scenarios: {known}"
            )
        path = found
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    return Source(text, path.resolve().parent, str(path))


def as_overrides(settings: Mapping[str, Setting] | None) -> core.Overrides:
    """Return the argument ``set`` as (path, value) pairs of the command line's ``--set``."""
    result: core.Overrides = []
    for path, value in (settings or {}).items():
        if isinstance(value, bool):
            result.append((path, "true" if value else "false"))
        else:
            result.append((path, str(value)))
    return result


def check(
    scenario: str | Path,
    set: Mapping[str, Setting] | None = None,
    *,
    mechanisms: Sequence[Mechanism] = (),
) -> list[core.Problem]:
    """Return all problems of a scenario; an empty list means that it can run.

    ``mechanisms`` are the user's own mechanisms that the scenario names, see ``run``.
    """
    from eastwest.goals import form  # noqa: PLC0415  imports this module

    source = load_source(scenario)
    with core.using(_loaded(mechanisms)):
        checked = core.check(
            source.text, str(source.base_dir), str(shipped.DATA), as_overrides(set)
        )
        return checked["problems"] or form.problems_of(source, as_overrides(set))


def run(
    scenario: str | Path,
    set: Mapping[str, Setting] | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    *,
    reference: bool = False,
    force: bool = False,
    progress: core.ProgressCallback | bool | None = None,
    mechanisms: Sequence[Mechanism] = (),
    checkpoint_s: float = 0,
    fresh: bool = False,
    memory_bytes: int | None = None,
    threads: int = 1,
    stop_when_missed: bool = False,
) -> Result:
    """Simulate a scenario and return its result folder.

    ``set`` overrides settings by path, such as ``{"fabric.host_rate": "10 Gbit/s"}``; ``seed``
    replaces the scenario's seed. ``out`` is the result folder; without it, a new folder is made
    under ``results/``. An existing result folder is replaced only with ``force``. ``reference``
    runs every port in the two-event reference mode, which is slower and has an equal digest.
    ``progress`` is a function that is called about ten times a second; None shows a bar in a
    notebook, True also in a terminal, and False shows nothing. ``mechanisms`` are the user's own
    mechanisms that the scenario names: folders of crates (``eastwest new``), Python files, or
    classes derived from ``Queue``, ``Congestion`` or ``Routing``. With ``checkpoint_s``, a
    checkpoint is written to the folder of the run store every ``checkpoint_s`` seconds and on an
    interrupt; a later call with equal arguments resumes from it, unless ``fresh``. A run that takes
    more than ``memory_bytes`` (default: nine tenths of the memory available), or is known to need
    more, ends with a ``MemoryError``. With ``threads`` above 1 a large fabric is simulated on
    several threads where that is possible; the result does not change, and its notes have the
    number of threads. With ``stop_when_missed``, the run stops as soon as it surely misses a goal
    of the scenario; its summary then has the entry ``stopped_early``. Such a run uses one thread
    and writes no checkpoints.

    Raises ``ScenarioError`` where the input is wrong, ``InputError`` where a mechanism is wrong,
    and ``RunError`` where the simulation cannot continue.
    """
    source = load_source(scenario)
    with core.using(_loaded(mechanisms)), watched(progress, source.name, RunWords()) as told:
        stop = stops(source, as_overrides(set)) if stop_when_missed else ()
        return simulate(
            source,
            as_overrides(set),
            seed,
            TargetFolder(Path(out) if out is not None else None, force),
            core.RunOptions(
                reference=reference,
                threads=threads,
                progress=told,
                memory_bytes=memory_bytes,
                stop=stop,
            ),
            Keeper(checkpoint_s, fresh=fresh) if checkpoint_s > 0 and not stop else None,
        )


def stops(source: Source, overrides: core.Overrides) -> tuple[core.Stop, ...]:
    """Return the limits among a scenario's goals that can stop its runs early.

    Raises ``InputError`` if there is none.
    """
    from eastwest.goals import early, form  # noqa: PLC0415  they import this module

    return early.stops(form.of_scenario(source, overrides), source, overrides)


def _loaded(mechanisms: Sequence[Mechanism]) -> core.Extras:
    """Return ``mechanisms``, loaded; if there are none, the mechanisms that are in use."""
    if not mechanisms:
        return core.extras()
    from eastwest.mechanisms.load import load  # noqa: PLC0415  few runs have mechanisms

    return load(mechanisms)[0]


def simulate(
    source: Source,
    overrides: core.Overrides,
    seed: int | None,
    target: TargetFolder,
    options: core.RunOptions,
    keeper: Keeper | None = None,
) -> Result:
    """Simulate a scenario and return its result folder, which is complete or absent.

    A ``keeper`` stores checkpoints while the run goes on, and removes them when the result is
    written.
    """
    target.check()
    try:
        raw, summary = measured(source, overrides, seed, options, keeper)
        if overrides:
            summary["set"] = [f"{path} = {value}" for path, value in overrides]
        if keeper is None:
            return write_result(target, raw, summary)
        try:
            result = write_result(target, raw, summary, keeper.parts)
        except FinishedInterrupt:
            keeper.done()
            raise
        keeper.done()
    finally:
        if keeper is not None:
            keeper.close()
    return result


def measured(
    source: Source,
    overrides: core.Overrides,
    seed: int | None,
    options: core.RunOptions | None = None,
    keeper: Keeper | None = None,
) -> tuple[core.CoreResult, dict[str, Any]]:
    """Simulate a scenario; return (result of the core, summary with wall time and memory).

    With a ``keeper``, the first rows of long tables may be in its files, and the times are sums
    over all processes that worked on the run. The memory is the peak of this process.
    """
    from eastwest.goals import form  # noqa: PLC0415  imports this module

    form.refuse(source, overrides)
    cpu = time.process_time()
    wall = time.perf_counter()
    options = options or core.RunOptions()
    told = _with_earlier_time(options.progress or _ignore_progress, keeper)
    options = replace(options, progress=Watched(told, options.memory_bytes), keeper=keeper)
    raw = core.run(source.text, str(source.base_dir), str(shipped.DATA), overrides, seed, options)
    summary: dict[str, Any] = json.loads(raw["summary_json"])
    summary.setdefault("version", core.version())
    before = keeper.earlier if keeper is not None else {"wall_s": 0.0, "cpu_s": 0.0}
    summary.setdefault("wall_s", before["wall_s"] + time.perf_counter() - wall)
    summary.setdefault("cpu_s", before["cpu_s"] + time.process_time() - cpu)
    tables = _tables(raw, keeper)
    summary |= _by_workload(tables, summary)
    summary |= _goals(raw, summary)
    summary.setdefault("peak_rss_mb", peak_rss_mb())
    if "stopped_early" in summary:
        # Notes about a whole run would not be true.
        summary["notes"] = [_of_early_stop(summary), *raw["notes"]]
        return raw, summary
    summary["notes"] = [*raw["notes"], *_of_window(summary)]
    summary["notes"] += [note for _, note in notes.of_run(summary)]
    if "hosts" in summary:
        summary["notes"] += host_cores.of_run(summary, frame(raw["tables"]["links"]))
    summary["notes"] += _of_mechanisms(summary)
    few = few_flows(tables["flows"], pick(summary, "flows", "count"), pick(summary, "simulated_s"))
    summary["notes"] += [few] if few else []
    summary["notes"] += no_overlap.of_run(tables["flows"].lazy(), summary, raw["scenario_toml"])
    if "transactions" in source.text:
        from eastwest.observe.kept_account import of_run  # noqa: PLC0415  few runs have spans

        said, kept = of_run(source.text, source.base_dir, raw["scenario_toml"])
        raw["attached"] = [*raw["attached"], *kept]
        summary["notes"] += said
    return raw, summary


def _goals(raw: core.CoreResult, summary: dict[str, Any]) -> dict[str, Any]:
    """Return the entry ``goals`` of a summary; an empty dict where the scenario has no goals."""
    if _GOAL.search(raw["scenario_toml"]) is None:
        return {}
    from eastwest.goals import early, evaluate, form  # noqa: PLC0415  they import this module
    from eastwest.sweep.metrics import metrics_in  # noqa: PLC0415

    goals = form.of_text(raw["scenario_toml"])
    stopped = early.Stopped.of(summary)
    return {"goals": evaluate.of_run(goals, metrics_in(summary), stopped)} if goals else {}


def _of_early_stop(summary: dict[str, Any]) -> str:
    """Return the note on a run that was stopped early."""
    from eastwest.goals import early  # noqa: PLC0415  imports this module

    return early.note(summary)


def _of_window(summary: dict[str, Any]) -> list[str]:
    """Return a list: a note if no job, flow or other unit starts in the scenario's window."""
    if "window" not in summary or any(map(first_unit, summary["workloads"].values())):
        return []
    words = window_words(summary["window"])
    return [
        f"measure.window: no flow, job or other unit starts in this part of the run ({words}), so "
        "that the summary has no measures of workloads"
    ]


def _tables(raw: core.CoreResult, keeper: Keeper | None) -> dict[str, by_workload.Table]:
    """Return the tables for measures of workloads, with the rows that a keeper has on disk."""
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    from eastwest import by_workload  # noqa: PLC0415

    tables: dict[str, by_workload.Table] = {}
    for name in by_workload.TABLES:
        columns = raw["tables"][name]
        if name == "flows":
            columns = [each for each in columns if each[0] in by_workload.FLOW_COLUMNS]
        last = tables[name] = frame(columns)
        if first := [] if keeper is None else keeper.parts(name):
            kept = [each[0] for each in columns]
            parts = [pl.scan_parquet(part, glob=False).select(kept) for part in first]
            tables[name] = pl.concat([*parts, last.lazy()])
    return tables


def _by_workload(
    tables: Mapping[str, by_workload.Table], summary: dict[str, Any]
) -> dict[str, Any]:
    """Return the entries ``workloads`` and ``while`` of a summary: measures of each workload."""
    from eastwest import by_workload  # noqa: PLC0415  large: polars

    return by_workload.measured(
        tables, float(summary.get("simulated_s", 0.0)), summary.get("window", {})
    )


def _of_mechanisms(summary: dict[str, Any]) -> list[str]:
    """Add the user's own mechanisms to a summary; return notes on their build and their time."""
    said = []
    if core.extras().sources:
        summary["mechanisms"] = list(core.extras().sources)
    for crate in (one for one in core.extras().sources if one.get("profile") == "development"):
        said.append(
            f"The mechanism crate {crate['crate']} was compiled for development; for long runs, "
            "--with-release makes the simulation faster"
        )
    calls, taken = summary.get("sketch_calls", 0), summary.get("sketch_s", 0.0)
    if not calls or not taken:
        return said
    share = min(1.0, taken / max(summary["wall_s"], taken))
    return [
        *said,
        f"{count(calls)} calls of mechanisms in Python took {span(taken)}, {share:.0%} of the run: "
        f"{count(round(calls / taken))} a second",
    ]


def _with_earlier_time(
    progress: core.ProgressCallback, keeper: Keeper | None
) -> core.ProgressCallback:
    """Return a progress callback that adds the wall time of earlier processes of this run."""
    if keeper is None:
        return progress
    earlier = keeper

    def told(state: core.Progress) -> None:
        progress({**state, "wall_s": state["wall_s"] + earlier.earlier["wall_s"]})

    return told


def _ignore_progress(_: core.Progress) -> None:
    """Ignore progress; the call lets Python notice Ctrl-C."""


def peak_rss_mb() -> float:
    """Return the peak memory of this process in MB (10⁶ bytes).

    Its source is ``/proc`` where that file system exists: ``getrusage`` would include the memory
    that the parent process had when it started this process.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource  # noqa: PLC0415  not on every platform

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
