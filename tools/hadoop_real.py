"""Predicts measured runs of a real Hadoop and writes what came out (papers/hadoop_real/results).

``python tools/hadoop_real.py`` calibrates on the unshaped run and on the 50 Mbit/s runs with deep
buffers, predicts all others, and writes ``machine.toml``, ``predictions.csv``, ``predictions.json``
and the figures. With ``--check`` nothing is written: exit code 1 if a band is missed.
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
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import eastwest as ew
from eastwest.calibrate import calibrate, toml_text
from eastwest.files import write_whole
from eastwest.plot.style import BLUE, INK, ORANGE, style
from eastwest.run import Setting

PAPER = Path(__file__).resolve().parents[1] / "papers" / "hadoop_real"
SCENARIO = PAPER / "scenarios" / "terasort.toml"
#: The deep model, by the job's own configuration and without calibration.
YARN = PAPER / "scenarios" / "terasort_yarn.toml"
#: Settings whose runs the machine is calibrated on; all others are predictions.
CALIBRATED = ("unshaped", "r50-deep")
SEEDS = 10
#: Bands asked: wire time and job time in mean absolute error, retransmissions as a factor.
WIRE_BAND, JOB_BAND, RETRANSMIT_BAND = 0.10, 0.15, 2.0
#: IP bytes of a full packet by its bytes with an Ethernet header.
_IP_SHARE = 1500 / 1514
_CONGESTION = {"reno": ("new-reno", "off"), "cubic": ("cubic", "linux")}


@dataclass(frozen=True)
class Outcome:
    """What a run did, measured or simulated."""

    job_s: float
    wire_s: float
    drops: float
    retransmits: float
    timeouts: float


@dataclass(frozen=True)
class Run:
    """One measured run."""

    name: str
    rate_mbit: float
    switch_buffer_bytes: int
    congestion: str
    maps: int
    shuffle_mb: float
    measured: Outcome

    @property
    def setting(self) -> str:
        """Its name without the number of the repetition."""
        return self.name.rpartition("-")[0]

    def settings(self) -> dict[str, Setting]:
        """What it changes in the scenario."""
        congestion, hystart = _CONGESTION[self.congestion]
        changed: dict[str, Setting] = {
            "fabric.host_rate": f"{self.rate_mbit:g} Mbit/s",
            "fabric.queue.limit": f"{round(self.switch_buffer_bytes * _IP_SHARE)} B",
            "tcp.congestion": congestion,
            "tcp.hystart": hystart,
        }
        if self.maps != 8:
            # 1 GB: splits of 67.1 MB and 57.9 MB, on the average 62.5 MB
            changed |= {"workload.hadoop.job.0.input": "1 GB"}
            changed |= {"workload.hadoop.job.0.maps": self.maps}
        return changed


def measured_runs() -> list[Run]:
    """All measured runs."""
    with (PAPER / "data" / "runs.csv").open(encoding="utf-8", newline="") as stream:
        return [
            Run(
                row["run"],
                float(row["rate_mbit"]),
                int(row["switch_buffer_bytes"]),
                row["congestion"],
                int(row["maps"]),
                float(row["shuffle_mb"]),
                Outcome(*(float(row[name]) for name in Outcome.__annotations__)),
            )
            for row in csv.DictReader(stream)
        ]


def machine(runs: Sequence[Run]) -> str:
    """The machine profile from the runs it may be calibrated on."""
    used = [run for run in runs if run.setting in CALIBRATED]
    files = [PAPER / "data" / f"{run.name}.jhist.gz" for run in used]
    rates = [run.rate_mbit * 1e6 or None for run in used]
    return toml_text(calibrate(files, rates))


def simulate(settings: Mapping[str, Setting], profile: str | None, seed: int) -> Outcome:
    """One simulated run: with a machine profile, or else by the job's own configuration."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = YARN
        if profile is not None:
            (Path(folder) / "machine.toml").write_text(profile, "utf-8")
            text = SCENARIO.read_text("utf-8")
            head, hadoop, rest = text.partition('kind = "mapreduce"\n')
            scenario = Path(folder) / "terasort.toml"
            scenario.write_text(f'{head}{hadoop}machine = "machine.toml"\n{rest}', "utf-8")
        result = ew.run(scenario, set=dict(settings), seed=seed, out=Path(folder) / "result")
        summary = result.summary
        drops = result.links.filter(pl.col("src") == "switch0")["drops"].sum()
        return Outcome(
            float(result.jobs["runtime_s"][0]),
            wire_time(result),
            float(drops),
            float(summary["tcp"]["retransmits"]),
            float(summary["tcp"]["timeouts"]),
        )


def wire_time(result: ew.Result) -> float:
    """From 1 % to 99 % of the bytes on the ports to the workers during the shuffle, in seconds."""
    reduces = result.tasks.filter(pl.col("kind") == "reduce")
    start, end = reduces["started_s"].min(), reduces["input_done_s"].max()
    ports = result.links.filter(
        (pl.col("src") == "switch0") & pl.col("dst").is_in([f"h{i}" for i in range(1, 5)])
    )["link"]
    bins = (
        result.link_samples.filter(
            pl.col("link").is_in(ports.to_list()) & pl.col("time_s").is_between(start, end)
        )
        .group_by("time_s")
        .agg(pl.col("bytes").sum())
        .sort("time_s")
        .with_columns(share=pl.col("bytes").cum_sum() / pl.col("bytes").sum())
    )
    reached = [float(bins.filter(pl.col("share") >= share)["time_s"][0]) for share in (0.01, 0.99)]
    return reached[1] - reached[0]


def mean(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean of each number."""
    names = Outcome.__annotations__
    return Outcome(*(statistics.mean(getattr(o, name) for o in outcomes) for name in names))


@dataclass(frozen=True)
class Comparison:
    """A setting: means of its measured and of its simulated runs, and the spread of both."""

    setting: str
    predicted: bool
    measured: Outcome
    simulated: Outcome
    measured_runs: list[Outcome]
    simulated_runs: list[Outcome]

    def error(self, name: str) -> float:
        """Simulated over measured, less one."""
        return float(getattr(self.simulated, name) / getattr(self.measured, name) - 1)


def compare(
    runs: Sequence[Run],
    profile: str | None,
    seeds: int,
    extra: Mapping[str, Setting] | None = None,
    calibrated: Sequence[str] = CALIBRATED,
) -> list[Comparison]:
    """All settings with a rate; ``extra`` changes the scenario for all of them."""
    settings: dict[str, list[Run]] = {}
    for run in runs:
        if run.rate_mbit:
            settings.setdefault(run.setting, []).append(run)
    found = []
    for name, members in settings.items():
        changed = members[0].settings() | dict(extra or {})
        simulated = [simulate(changed, profile, seed) for seed in range(1, seeds + 1)]
        measured = [member.measured for member in members]
        predicted = name not in calibrated
        found.append(
            Comparison(name, predicted, mean(measured), mean(simulated), measured, simulated)
        )
    return found


def verdicts(found: Sequence[Comparison]) -> dict[str, tuple[float, float]]:
    """Each number asked and its band, over the settings that are predictions."""
    predicted = [c for c in found if c.predicted]
    factors = [c.simulated.retransmits / c.measured.retransmits for c in predicted]
    return {
        "wire time, mean absolute error": (
            statistics.mean(abs(c.error("wire_s")) for c in predicted),
            WIRE_BAND,
        ),
        "job time, mean absolute error": (
            statistics.mean(abs(c.error("job_s")) for c in predicted),
            JOB_BAND,
        ),
        "retransmissions, worst factor": (max(max(f, 1 / f) for f in factors), RETRANSMIT_BAND),
    }


def effects(found: Sequence[Comparison]) -> list[tuple[str, str, float, float]]:
    """Effects of one setting against another: what, number, measured and simulated factor."""
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
            factors = [
                getattr(getattr(by_name[one], side), number)
                / getattr(getattr(by_name[other], side), number)
                for side in ("measured", "simulated")
            ]
            rows.append((said, number, factors[0], factors[1]))
    return rows


def show(found: Sequence[Comparison]) -> str:
    """The comparison as a table in Markdown."""
    lines = [
        "| setting | wire s, measured | simulated | error | job s, measured | simulated | error "
        "| retransmits, measured | simulated |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for c in found:
        name = c.setting if c.predicted else f"{c.setting} (calibrated)"
        m, s = c.measured, c.simulated
        lines.append(
            f"| {name} | {m.wire_s:.2f} | {s.wire_s:.2f} | {c.error('wire_s'):+.1%} "
            f"| {m.job_s:.1f} | {s.job_s:.1f} | {c.error('job_s'):+.1%} "
            f"| {m.retransmits:.0f} | {s.retransmits:.0f} |"
        )
    for what, (value, band) in verdicts(found).items():
        lines.append(f"\n{what}: {value:.3f} (band {band})")
    for said, number, measured, simulated in effects(found):
        same = (measured - 1) * (simulated - 1) > 0
        lines.append(
            f"\n{said}, {number}: × {measured:.2f} measured, × {simulated:.2f} simulated"
            f" ({'same' if same else 'OTHER'} sign)"
        )
    return "\n".join(lines)


#: Panels of the figure: number, heading, how far a simulated mean may lie from the measured one.
_PANELS = (
    ("wire_s", "shuffle on the wire, s", WIRE_BAND),
    ("job_s", "job, s", JOB_BAND),
    ("retransmits", "retransmissions", RETRANSMIT_BAND - 1),
)


def draw(found: Sequence[Comparison]) -> Figure:
    """Every measured and simulated run, and the band around each measured mean."""
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
            values = [getattr(run, number) for run in side]
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
    """All runs as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["setting", "predicted", "side", "run", *Outcome.__annotations__])
    for c in found:
        for side, outcomes in (("measured", c.measured_runs), ("simulated", c.simulated_runs)):
            for number, outcome in enumerate(outcomes, 1):
                values = (f"{value:.6g}" for value in asdict(outcome).values())
                writer.writerow([c.setting, str(c.predicted).lower(), side, number, *values])
    return stream.getvalue()


def write(
    found: Sequence[Comparison], own: Sequence[Comparison], profile: str, command: str
) -> None:
    """Write everything of papers/hadoop_real/results."""
    results = PAPER / "results"
    summary = {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "version": ew.__version__,
        "bands": {what: {"value": v, "band": b} for what, (v, b) in verdicts(found).items()},
        "own_configuration": {
            "bands": {what: {"value": v, "band": b} for what, (v, b) in verdicts(own).items()},
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
            for c in found
        ],
    }
    write_whole(results / "machine.toml", profile.encode())
    write_whole(results / "predictions.csv", table(found).encode())
    write_whole(results / "predictions.json", (json.dumps(summary, indent=1) + "\n").encode())
    figure = draw(found)
    for kind in ("png", "svg"):
        picture = io.BytesIO()
        with style():
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(picture, format=kind, metadata=metadata)
        write_whole(results / f"predictions.{kind}", picture.getvalue())


def main() -> int:
    """Calibrate, predict, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    runs = measured_runs()
    profile = machine(runs)
    found = compare(runs, profile, arguments.seeds)
    print(show(found))
    own = compare(runs, None, arguments.seeds, calibrated=())
    print("\nBy the job's own configuration, nothing calibrated:\n\n" + show(own))
    held = all(value <= band for value, band in verdicts(found).values())
    if not arguments.check:
        write(found, own, profile, f"python tools/hadoop_real.py --seeds {arguments.seeds}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
