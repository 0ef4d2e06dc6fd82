"""Predicts measured runs of a real Hadoop.

``python tools/hadoop_real.py`` calibrates on the unshaped run and on the 50 Mbit/s runs with deep
buffers of papers/hadoop_real/data, predicts all others, and writes papers/hadoop_real/results:
``machine.toml``, ``predictions.csv``, ``predictions.json`` and the figures. With ``--check``
nothing is written. Exit code 1 if a band is missed.

``python tools/hadoop_real.py --data FOLDER`` predicts the runs of a folder in the form of
``shared/data/hadoop-terasort`` (described in ``hadoop_real_runs``), or a single run's folder.
Nothing under papers/ is written; ``--out DIR`` gets tables and figures. The compared numbers are
defined in ``hadoop_real_measures``.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from xml.sax.saxutils import escape

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import eastwest as ew
import hadoop_real_runs as folders
from eastwest.calibrate import Containers, calibrate, toml_text
from eastwest.errors import InputError
from eastwest.files import write_whole
from eastwest.plot import picture
from eastwest.plot.style import BLUE, INK, ORANGE, style
from eastwest.run import Setting
from hadoop_real_measures import (
    NUMBERS,
    Attempt,
    Network,
    Outcome,
    Samples,
    first_percent,
    mean,
    outcome,
    retransmissions,
)
from hadoop_real_runs import CONGESTION, IP_SHARE, MeasuredRun

__all__ = ["Comparison", "InputError", "Outcome", "Run", "compare", "show", "verdicts"]

PAPER = Path(__file__).resolve().parents[1] / "papers" / "hadoop_real"
SCENARIO = PAPER / "scenarios" / "terasort.toml"
CONFIGURATION = PAPER / "scenarios" / "job_conf.xml.gz"
#: Settings whose runs calibrate the machine profile; the runs of all others are predictions.
CALIBRATED = ("unshaped", "r50-deep")
#: The measured machine: two cores that all four workers share.
CLUSTER = Containers(cores=2, workers_per_machine=4)
SEEDS = 10
#: Allowed mean absolute error of wire time and of job time; allowed factor of retransmissions.
WIRE_BAND, JOB_BAND, RETRANSMIT_BAND = 0.10, 0.15, 2.0
#: Time between two samples of the simulated ports in s, equal to that of measured ports.
_SAMPLE_S = 0.25


@dataclass(frozen=True)
class Case:
    """A scenario that predicts one setting: its text, the files beside it, and its overrides."""

    text: str
    files: dict[str, bytes]
    settings: dict[str, Setting]
    #: Remarks on the prediction that its reader must know.
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """One measured run of the paper."""

    name: str
    rate_mbit: float
    switch_buffer_bytes: int
    congestion: str
    maps: int
    shuffle_mb: float
    measured: Outcome
    reduce_memory_mb: int = 2048

    @property
    def setting(self) -> str:
        """Name of the case: the run's name without the number of the repetition."""
        return self.name.rpartition("-")[0]

    def settings(self) -> dict[str, Setting]:
        """Return the keys and values of the scenario that differ from the template in this case."""
        changed: dict[str, Setting] = {
            "fabric.host_rate": f"{self.rate_mbit:g} Mbit/s",
            "fabric.queue.limit": f"{round(self.switch_buffer_bytes * IP_SHARE)} B",
            **CONGESTION[self.congestion],
        }
        if self.maps != 8:
            # An input of 1 GB has splits of 67.1 MB and 57.9 MB, on average 62.5 MB.
            changed |= {"workload.hadoop.job.0.input": "1 GB"}
            changed |= {"workload.hadoop.job.0.maps": self.maps}
        if self.reduce_memory_mb != 2048:
            memory = "workload.hadoop.hadoop.mapreduce.reduce.memory.mb"
            changed |= {memory: self.reduce_memory_mb}
        return changed

    def case(self, extra: Mapping[str, Setting]) -> Case:
        """Return the scenario of this case; the keys of ``extra`` replace its own."""
        files = {CONFIGURATION.name: CONFIGURATION.read_bytes()}
        return Case(SCENARIO.read_text("utf-8"), files, self.settings() | dict(extra))


def measured_runs() -> list[Run]:
    """Return all measured runs of the paper."""
    with (PAPER / "data" / "runs.csv").open(encoding="utf-8", newline="") as stream:
        return [
            Run(
                row["run"],
                float(row["rate_mbit"]),
                int(row["switch_buffer_bytes"]),
                row["congestion"],
                int(row["maps"]),
                float(row["shuffle_mb"]),
                _kept_outcome({name: float(v) for name, v in row.items() if _is_number(v)}),
                int(row["reduce_memory_mb"]),
            )
            for row in csv.DictReader(stream)
        ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _kept_outcome(row: Mapping[str, float]) -> Outcome:
    """Return the numbers of a row of runs.csv, whose times are since the job's submission."""
    return Outcome(
        job_s=row["job_s"],
        wire_s=row["wire_s"],
        drops=row["drops"],
        retransmits=retransmissions(row["retransmits"], row["master_drops"]),
        timeouts=row["timeouts"],
        first_map_s=row["first_map_s"],
        maps_s=row["last_map_s"] - row["first_map_s"],
        last_map_to_reduce_s=row["first_reduce_s"] - row["last_map_s"],
        last_map_to_byte_s=row["first_byte_s"] - row["last_map_s"],
        shuffle_s=row["shuffle_mean_s"],
        shuffle_to_end_s=row["job_s"] - row["last_shuffle_s"],
    )


def machine(runs: Sequence[Run]) -> str:
    """Return the machine profile (TOML), estimated from the runs of ``CALIBRATED``."""
    used = [run for run in runs if run.setting in CALIBRATED]
    files = [PAPER / "data" / f"{run.name}.jhist.gz" for run in used]
    rates = [run.rate_mbit * 1e6 or None for run in used]
    firsts = [first_percent(run.measured) for run in used]
    return toml_text(calibrate(files, rates, cluster=CLUSTER, first_percents_s=firsts))


def data_case(run: MeasuredRun) -> Case:
    """Return the scenario of a measured run that was read from a folder."""
    rate = f"{run.rate_mbit:g} Mbit/s"
    fabric = f'kind = "star"\nhosts = {len(run.workers) + 1}'
    if len(run.racks) == 2:
        left, right = (len(rack) for rack in run.racks)
        fabric = (
            f'kind = "dumbbell"\nhosts_left = {left + 1}\nhosts_right = {right}\n'
            f'uplink_rate = "{float(run.keys["TRUNK"]):g} Mbit/s"\nuplink_delay = "20 us"'
        )
    text = SCENARIO.read_text("utf-8")
    head, _, rest = text.partition('kind = "star"\n')
    text = head + fabric + "\n" + rest.partition("\n")[2]
    text = text.replace(CONFIGURATION.name, "job_conf.xml")
    workers = len(run.workers)
    output = int(run.properties.get(folders.REPLICATION, "1"))
    copies = workers if run.all_local else min(workers, run.input_replication)
    job = "workload.hadoop.job.0"
    settings: dict[str, Setting] = {
        "fabric.host_rate": rate,
        "fabric.queue.limit": f"{round(int(run.keys['SWBUF']) * IP_SHARE)} B",
        "fabric.host_queue.limit": f"{round(int(run.keys['HOSTBUF']) * IP_SHARE)} B",
        "tcp.min_rto": f"{float(run.keys['MINRTO']):g} ms",
        **CONGESTION[run.keys["CC"]],
        "workload.hadoop.node.cores": round(run.cores or CLUSTER.cores or 2),
        "workload.hadoop.node.workers_per_machine": workers,
        "workload.hadoop.hadoop.dfs.replication": copies,
        "workload.hadoop.hadoop.mapreduce.terasort.output.replication": output,
        f"{job}.input": f"{run.input_bytes} B",
        f"{job}.shuffle_ratio": round(run.shuffle_bytes / run.input_bytes, 9),
        f"{job}.output_ratio": round(run.output_bytes / run.input_bytes, 9),
        f"{job}.maps": run.maps,
        f"{job}.reduces": run.reduces,
    }
    remarks = list(run.remarks)
    if not run.all_local:
        remarks.append(
            "not all maps had their split on their node: the simulated ones draw where theirs lie, "
            "and may read more or fewer of them over the network"
        )
    files = {"job_conf.xml": configuration_xml(run.properties)}
    return _without_unknown(Case(text, files, settings, remarks), run.properties)


def configuration_xml(properties: Mapping[str, str]) -> bytes:
    """Return properties as a configuration file of Hadoop."""
    lines = [
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>"]).encode()


def _without_unknown(case: Case, properties: Mapping[str, str]) -> Case:
    """Return the case without properties unknown to the simulator, with a remark on each."""
    kept, said = dict(properties), list(case.remarks)
    for _ in range(len(properties)):
        case = Case(case.text, {"job_conf.xml": configuration_xml(kept)}, case.settings, said)
        with tempfile.TemporaryDirectory() as folder:
            scenario = written(case, None, Path(folder))
            problems = [p["message"] for p in ew.check(scenario, set=case.settings)]
        unknown = [
            name
            for name in kept
            if any(
                m.startswith(f"{name} in job_conf.xml")
                and "is not a property that Eastwest knows" in m
                for m in problems
            )
        ]
        if not unknown:
            break
        for name in unknown:
            said.append(f"{name}={kept.pop(name)} is not known to the simulator and left out")
    if problems:
        raise InputError("the scenario of this setting is refused: " + "; ".join(problems))
    return case


def written(case: Case, profile: str | None, folder: Path) -> Path:
    """Write the scenario with its files and machine profile into a folder; return its path."""
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    text = case.text
    if profile is not None:
        (folder / "machine.toml").write_text(profile, "utf-8")
        head, hadoop, rest = text.partition('kind = "mapreduce"\n')
        text = f'{head}{hadoop}machine = "machine.toml"\n{rest}'
    path = folder / "terasort.toml"
    path.write_text(text, "utf-8")
    return path


def simulate(case: Case, profile: str | None, seed: int) -> tuple[Outcome, list[str]]:
    """Simulate a case, with or without a machine profile; return its outcome and its notes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenario = written(case, profile, folder)
        result = ew.run(scenario, set=case.settings, seed=seed, out=folder / "result")
        return simulated_outcome(result), list(result.summary["notes"])


def simulated_outcome(result: ew.Result) -> Outcome:
    """Return the numbers of a simulated run, by the definitions of ``hadoop_real_measures``."""
    tasks = result.tasks.select("kind", "assigned_s", "finished_s", "input_done_s")
    attempts = [
        Attempt(kind, start, end, shuffled if kind == "reduce" else None)
        for kind, start, end, shuffled in tasks.iter_rows()
    ]
    links = result.links
    from_switch = links.filter(~pl.col("src").str.starts_with("h"))
    to_workers = from_switch.filter(pl.col("dst").str.contains(r"^h[1-9]\d*$"))
    trunk = from_switch.filter(~pl.col("dst").str.starts_with("h"))
    tcp = result.summary["tcp"]
    network = Network(
        retransmits=float(tcp["retransmits"]),
        timeouts=float(tcp["timeouts"]),
        worker_port_drops=float(to_workers["drops"].sum()),
        master_port_drops=float(from_switch.filter(pl.col("dst") == "h0")["drops"].sum()),
        trunk_drops=float(trunk["drops"].sum()) if trunk.height else None,
    )
    job = result.jobs.row(0, named=True)
    return outcome(float(job["runtime_s"]), attempts, _sent(result, to_workers), network)


def _sent(result: ew.Result, ports: pl.DataFrame) -> dict[str, Samples]:
    """Return bytes sent so far on each port at the end of each sample, as of measured ports."""
    samples = result.link_samples.filter(pl.col("link").is_in(ports["link"].to_list()))
    last = round(float(samples["time_s"].max() or 0) / _SAMPLE_S)  # type: ignore[arg-type]
    found: dict[str, Samples] = {}
    for link, name in ports.select("link", "name").iter_rows():
        own = samples.filter(pl.col("link") == link)
        grown = {round(t / _SAMPLE_S): b for t, b in own.select("time_s", "bytes").iter_rows()}
        so_far, series = 0.0, []
        for number in range(last + 1):
            so_far += grown.get(number, 0)
            series.append((number * _SAMPLE_S, so_far))
        found[name] = series
    return found


@dataclass(frozen=True)
class Comparison:
    """A setting: means of its measured and of its simulated runs, and the spread of both."""

    setting: str
    predicted: bool
    measured: Outcome
    simulated: Outcome
    measured_runs: list[Outcome]
    simulated_runs: list[Outcome]
    #: Remarks on the prediction that its reader must know.
    remarks: list[str] = field(default_factory=list)

    def error(self, name: str) -> float:
        """Return simulated over measured, less one; NaN where one of them is not known or 0."""
        measured, simulated = getattr(self.measured, name), getattr(self.simulated, name)
        if measured is None or simulated is None or measured == 0:
            return float("nan")
        return float(simulated / measured - 1)


def compare(
    runs: Sequence[Run],
    profile: str | None,
    seeds: int,
    extra: Mapping[str, Setting] | None = None,
    calibrated: Sequence[str] = CALIBRATED,
) -> list[Comparison]:
    """Return the comparisons of all settings with a rate; ``extra`` changes all scenarios."""
    settings: dict[str, list[Run]] = {}
    for run in runs:
        if run.rate_mbit:
            settings.setdefault(run.setting, []).append(run)
    return [
        _compared(
            name,
            name not in calibrated,
            [member.measured for member in members],
            members[0].case(extra or {}),
            profile,
            seeds,
        )
        for name, members in settings.items()
    ]


def _compared(
    name: str,
    predicted: bool,
    measured: list[Outcome],
    case: Case,
    profile: str | None,
    seeds: int,
) -> Comparison:
    ran = [simulate(case, profile, seed) for seed in range(1, seeds + 1)]
    simulated = [found for found, _ in ran]
    ignored = sorted({note for _, notes in ran for note in notes if "is ignored" in note})
    remarks = [*case.remarks, *ignored]
    return Comparison(
        name, predicted, mean(measured), mean(simulated), measured, simulated, remarks
    )


def compare_data(
    runs: Sequence[MeasuredRun], profile: str | None, seeds: int, calibrated: Sequence[str]
) -> list[Comparison]:
    """Return the comparisons of all settings of runs from folders.

    ``calibrated`` names the runs that calibrate the machine profile; they are no predictions.
    """
    settings: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        if run.rate_mbit:
            settings.setdefault(run.setting, []).append(run)
    found = []
    for name, members in settings.items():
        for other in members[1:]:
            apart = members[0].same_as(other)
            if apart is not None:
                raise InputError(
                    f"{members[0].folder} and {other.folder}: one setting by their names, "
                    f"but {apart}"
                )
        case = data_case(members[0])
        remarks = [*case.remarks, *(f"{m.name}: {r}" for m in members[1:] for r in m.remarks)]
        case = Case(case.text, case.files, case.settings, remarks)
        predicted = not any(member.name in calibrated for member in members)
        measured = [member.measured for member in members]
        found.append(_compared(name, predicted, measured, case, profile, seeds))
    return found


def chosen(runs: Sequence[MeasuredRun], names: Sequence[str] | None) -> list[MeasuredRun]:
    """Return the runs that calibrate: those of ``names``, else those of the paper's settings."""
    wanted = CALIBRATED if names is None else names
    found = [run for run in runs if run.name in wanted or run.setting in wanted]
    for name in names or ():
        if not any(name in (run.name, run.setting) for run in runs):
            known = ", ".join(sorted({run.name for run in runs}))
            raise InputError(
                f"--calibrate {name}: there is no such run or setting; there are {known}"
            )
    return found


def data_machine(used: Sequence[MeasuredRun]) -> tuple[str, str]:
    """Return a profile from runs (without runs, the paper's profile) and a sentence on it."""
    if not used:
        path = PAPER / "results" / "machine.toml"
        said = (
            "no run to calibrate on: the machine is that of "
            "papers/hadoop_real/results/machine.toml; --calibrate NAME names runs of this folder"
        )
        return path.read_text("utf-8"), said
    workers = {len(run.workers) for run in used}
    if len(workers) > 1:
        raise InputError("--calibrate: all runs must have equal numbers of workers")
    cluster = Containers(used[0].cores or CLUSTER.cores, workers.pop())
    rates = [run.rate_mbit * 1e6 or None for run in used]
    paths = [run.history.path for run in used]
    firsts = [first_percent(run.measured) for run in used]
    found = calibrate(paths, rates, cluster=cluster, first_percents_s=firsts)
    return toml_text(found), "calibrated on " + ", ".join(run.name for run in used)


def verdicts(found: Sequence[Comparison]) -> dict[str, tuple[float, float]]:
    """Return each number with a band, and the band, over settings that are predictions."""
    verdict = {}
    for what, name, band in (
        ("wire time", "wire_s", WIRE_BAND),
        ("job time", "job_s", JOB_BAND),
    ):
        errors = [abs(c.error(name)) for c in found if c.predicted and _has(c, name)]
        if errors:
            verdict[f"{what}, mean absolute error"] = (statistics.mean(errors), band)
    factors = [1 + c.error("retransmits") for c in found if c.predicted and _has(c, "retransmits")]
    if factors:
        worst = max(max(f, 1 / f) if f > 0 else float("inf") for f in factors)
        verdict["retransmissions, worst factor"] = (worst, RETRANSMIT_BAND)
    return verdict


def _has(c: Comparison, name: str) -> bool:
    """Return whether measured and simulated runs both have a number, so that it has an error."""
    measured, simulated = getattr(c.measured, name), getattr(c.simulated, name)
    return measured is not None and simulated is not None and measured > 0


def effects(found: Sequence[Comparison]) -> list[tuple[str, str, float, float]]:
    """Return (effect, number, measured factor, simulated factor) between settings."""
    by_name = {c.setting: c for c in found}
    wanted = [
        ("shallow instead of deep", "r50-shallow", "r50-deep"),
        ("cubic instead of reno", "r50-deep-cubic", "r50-deep"),
        ("100 instead of 50 Mbit/s", "r100-deep", "r50-deep"),
    ]
    rows = []
    for said, one, other in wanted:
        if one not in by_name or other not in by_name:
            continue
        for number in ("wire_s", "retransmits"):
            if not all(_has(by_name[name], number) for name in (one, other)):
                continue
            factors = [
                getattr(getattr(by_name[one], side), number)
                / getattr(getattr(by_name[other], side), number)
                for side in ("measured", "simulated")
            ]
            rows.append((said, number, factors[0], factors[1]))
    return rows


def show(found: Sequence[Comparison]) -> str:
    """Return the comparison as a table in Markdown."""
    lines = [
        "| setting | wire s, measured | simulated | error | job s, measured | simulated | error "
        "| retransmits, measured | simulated |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for c in found:
        name = c.setting if c.predicted else f"{c.setting} (calibrated)"
        cells = [
            name,
            *_cells(c, "wire_s", 2),
            *_cells(c, "job_s", 1),
            *_cells(c, "retransmits", 0)[:2],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    for what, (value, band) in verdicts(found).items():
        lines.append(f"\n{what}: {value:.3f} (band {band})")
    for said, number, measured, simulated in effects(found):
        same = (measured - 1) * (simulated - 1) > 0
        lines.append(
            f"\n{said}, {number}: × {measured:.2f} measured, × {simulated:.2f} simulated"
            f" ({'same' if same else 'OTHER'} sign)"
        )
    return "\n".join(lines)


def _cells(c: Comparison, number: str, digits: int) -> list[str]:
    """Return measured value, simulated value and error of a number, as in a table."""
    measured, simulated = getattr(c.measured, number), getattr(c.simulated, number)
    said = ["–" if v is None else f"{v:.{digits}f}" for v in (measured, simulated)]
    return [*said, f"{c.error(number):+.1%}" if _has(c, number) else "–"]


def show_all(found: Sequence[Comparison]) -> str:
    """Return every number of every setting, one table for each, with its remarks."""
    lines: list[str] = []
    for c in found:
        said = f"{len(c.measured_runs)} measured, {len(c.simulated_runs)} simulated"
        name = c.setting if c.predicted else f"{c.setting} (calibrated)"
        lines += [f"\n{name}: {said}", "", "| number | measured | simulated | error |"]
        lines.append("|---|---|---|---|")
        for number, meaning in NUMBERS.items():
            if getattr(c.measured, number) is None and getattr(c.simulated, number) is None:
                continue
            digits = 1 if number in ("drops", "retransmits", "timeouts", "trunk_drops") else 2
            lines.append(f"| {meaning} | {' | '.join(_cells(c, number, digits))} |")
        lines += ["", *(f"note: {remark}" for remark in c.remarks)]
    return "\n".join(lines)


#: Panels of the figure: number, heading, allowed distance of a simulated mean from the measured
#: mean.
_PANELS = (
    ("wire_s", "shuffle on the wire, s", WIRE_BAND),
    ("job_s", "job, s", JOB_BAND),
    ("retransmits", "retransmissions", RETRANSMIT_BAND - 1),
)


def draw(found: Sequence[Comparison]) -> Figure:
    """Return a figure of every measured and simulated run, and the band around measured means."""
    with style():
        figure = Figure(figsize=(10.4, 3.2), layout="constrained")
        panels = figure.subplots(1, len(_PANELS), sharey=True)
        for axes, (number, heading, band) in zip(panels, _PANELS, strict=True):
            _panel(axes, found, number, band)
            axes.set_title(heading)
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(MaxNLocator(5))
        names = [c.setting + ("" if c.predicted else " *") for c in found]
        panels[0].set_yticks(range(len(found)), names)
        panels[0].invert_yaxis()
        panels[0].tick_params(axis="y", colors=INK, length=0)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def _panel(axes: Axes, found: Sequence[Comparison], number: str, band: float) -> None:
    for place, c in enumerate(found):
        middle = getattr(c.measured, number)
        if middle is None:
            continue
        low = middle / (1 + band) if number == "retransmits" else middle * (1 - band)
        first = place == 0
        axes.barh(
            place,
            middle * (1 + band) - low,
            left=low,
            height=0.62,
            color="#e9ecf1",
            label="band asked, around the measured mean" if first else None,
        )
        for side, offset, mark, colour in (
            (c.measured_runs, -0.14, "D", ORANGE),
            (c.simulated_runs, 0.14, "o", BLUE),
        ):
            values = [v for v in (getattr(run, number) for run in side) if v is not None]
            said = "measured" if mark == "D" else "simulated, a seed each"
            axes.plot(
                values,
                [place + offset] * len(values),
                mark,
                ms=4.5,
                mew=0.6,
                mfc=colour,
                mec="white",
                label=said if first else None,
            )
    axes.grid(visible=False, axis="y")


def table(found: Sequence[Comparison]) -> str:
    """Return all runs as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["setting", "predicted", "side", "run", *(f.name for f in fields(Outcome))])
    for c in found:
        for side, outcomes in (("measured", c.measured_runs), ("simulated", c.simulated_runs)):
            for number, of_run in enumerate(outcomes, 1):
                values = ("" if v is None else f"{v:.6g}" for v in asdict(of_run).values())
                writer.writerow([c.setting, str(c.predicted).lower(), side, number, *values])
    return stream.getvalue()


def write(
    found: Sequence[Comparison],
    own: Sequence[Comparison],
    profile: str,
    command: str,
    results: Path = PAPER / "results",
) -> None:
    """Write profile, predictions and figures into a folder."""
    summary = {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "version": ew.__version__,
        "bands": _bands(found),
        "own_configuration": {
            "bands": _bands(own),
            "settings": [{"setting": c.setting, "simulated": asdict(c.simulated)} for c in own],
        },
        "effects": [
            {"effect": said, "number": number, "measured": measured, "simulated": simulated}
            for said, number, measured, simulated in effects(found)
        ],
        "settings": [
            {
                "setting": c.setting,
                "predicted": c.predicted,
                "measured": asdict(c.measured),
                "simulated": asdict(c.simulated),
            }
            | ({"notes": c.remarks} if c.remarks else {})
            for c in found
        ],
    }
    results.mkdir(parents=True, exist_ok=True)
    write_whole(results / "machine.toml", profile.encode())
    write_whole(results / "predictions.csv", table(found).encode())
    write_whole(results / "predictions.json", (json.dumps(summary, indent=1) + "\n").encode())
    figure = draw(found)
    with style():
        picture.save(figure, results / "predictions.svg")


def _bands(found: Sequence[Comparison]) -> dict[str, dict[str, float]]:
    return {what: {"value": v, "band": b} for what, (v, b) in verdicts(found).items()}


OWN = "By the job's own configuration, nothing calibrated:"


def predict_data(arguments: argparse.Namespace) -> int:
    """Predict the runs of a folder: print tables, and write them into ``--out``."""
    out: Path | None = arguments.out
    if out is not None and out.resolve().is_relative_to(PAPER.parent):
        raise InputError(f"--out {out}: nothing under {PAPER.parent} is written with --data")
    given: dict[str, str] = {}
    for text in arguments.set or ():
        given |= folders.parse_settings(text, "--set")
    runs = folders.load(arguments.data, given, CONFIGURATION)
    used = chosen(runs, arguments.calibrate)
    profile, said = data_machine(used)
    shaped = [run for run in runs if run.rate_mbit]
    for run in runs:
        if not run.rate_mbit:
            print(
                f"{run.name}: RATE=0, nothing was shaped: its network is the machine's own, "
                "which is not predicted"
            )
    if not shaped:
        raise InputError(f"{arguments.data}: has no run with a rate")
    print(said, end="\n\n")
    found = compare_data(shaped, profile, arguments.seeds, [run.name for run in used])
    print(show(found) + "\n" + show_all(found))
    own = compare_data(shaped, None, arguments.seeds, ())
    print(f"\n{OWN}\n\n{show(own)}\n{show_all(own)}")
    if out is not None:
        command = f"python tools/hadoop_real.py --data {arguments.data} --seeds {arguments.seeds}"
        write(found, own, profile, command, out)
    held = all(value <= band for value, band in verdicts(found).values())
    return 1 if arguments.check and not held else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Calibrate, predict, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument(
        "--check",
        action="store_true",
        help="without --data: write nothing; exit code 1: a band missed",
    )
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="predict the runs of this folder"
    )
    parser.add_argument(
        "--calibrate", nargs="+", metavar="NAME",
        help="runs or settings of --data to calibrate the machine on (default: unshaped, r50-deep)",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", metavar="KEY=VALUE",
        help="a key of settings.txt, for all runs of --data: " + ", ".join(folders.KEYS),
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write the predictions of --data here"
    )
    arguments = parser.parse_args(argv)
    if arguments.data is not None:
        try:
            return predict_data(arguments)
        except InputError as error:
            print(f"hadoop_real: {error}", file=sys.stderr)
            return 2
    if arguments.calibrate or arguments.set or arguments.out:
        parser.error("--calibrate, --set and --out are allowed only with --data")
    runs = measured_runs()
    profile = machine(runs)
    found = compare(runs, profile, arguments.seeds)
    print(show(found))
    own = compare(runs, None, arguments.seeds, calibrated=())
    print(f"\n{OWN}\n\n" + show(own))
    held = all(value <= band for value, band in verdicts(found).values())
    if not arguments.check:
        write(found, own, profile, f"python tools/hadoop_real.py --seeds {arguments.seeds}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
