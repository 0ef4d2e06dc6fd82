"""Chapters 5 and 6 of E-EON beyond their claims: every configuration, and further sweeps.

    python papers/eeon_ch6/study.py                   # all parts; continues where it was stopped
    python papers/eeon_ch6/study.py chapter6 service  # some
    python papers/eeon_ch6/study.py --plan            # only what is missing, and how long it takes
    python papers/eeon_ch6/study.py --kept            # runs nothing: what the store has already
    python papers/eeon_ch6/study.py --draw            # the pictures again, from the kept numbers
    python papers/eeon_ch6/study.py --dask tcp://10.0.0.1:8786   # on the workers of a Dask cluster

Parts are the grids of the claims, ``grid.toml`` of both chapters, each with the study's TCP and
with that of profiles.toml, under the reading that the pages show (``READINGS`` of tables.py); and
the sweeps of study/, each a file that ``eastwest sweep`` runs too, with the values of ``first``.
Runs come from the store where it has them, so claims and study share theirs. The folder
results/study has one CSV per part with means and 95 % intervals over seeds (``n`` seeds: 0 is not
run), and the pictures (drawing.py). Which numbers are read from a run: numbers_of.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from drawing import PICTURES, configurations, front
from numbers_of import numbers_of
from tables import kept_in, reading_of

from eastwest.cli.study import (
    Labels,
    Part,
    Point,
    averages,
    command,
    decided,
    grid_sweeps,
    keep_table,
    kept_table,
    points_of,
    ratios,
)
from eastwest.plot import panels
from eastwest.store import Store
from eastwest.sweep.check import load
from eastwest.sweep.spec import Spec

HERE = Path(__file__).resolve().parent
CHAPTERS = {"chapter5": HERE.parent / "eeon_ch5", "chapter6": HERE}
STUDIES = ("anchor", "sensitivity", "hosts", "ect", "service", "fast", "fat_tree")

#: Choices of values that the thesis does not state, in the order of study/sensitivity.toml.
CHOICES = (
    "as chosen",
    "10 copies",
    "20 copies",
    "windows of 64 KB",
    "windows of 64 MB",
    "every packet acknowledged",
    "first windows of 2",
    "no SACK",
    "minimum timeout 10 ms",
    "first timeout 200 ms",
    "ECMP per packet",
    "Hadoop's own rates",
    "half the rates",
    "twice the rates",
)
#: Factors on Hadoop's own rates, in the order of study/anchor.toml.
FACTORS = ("1", "3.125", "6.25", "12.5")
LINKS = ("as the study", "a hundred times as fast")

#: Expected CPU seconds of a run of the job, for points that have never been run.
RUN_S = 8.0


def part_of(name: str) -> Part:
    """Return a part: a chapter's grid with both TCPs, or a sweep of study/."""
    if name in CHAPTERS:
        study = CHAPTERS[name]
        sweeps = grid_sweeps(study, "linux", read_as=reading_of(study))
    else:
        sweeps = [("", load(HERE / "study" / f"{name}.toml"))]
    return Part(name, sweeps, partial(labels_of, name), lambda *_: RUN_S)


def labels_of(part: str, tcp: str, spec: Spec, number: int) -> Labels:
    """Return the labels of a point; in a part of study/, the labels of its axes come first."""
    settings = decided(spec, number)
    if part in CHAPTERS:
        return {"tcp": tcp, **grid_labels(settings)}
    places, rest = [], number
    for axis in reversed(spec.axes):
        rest, place = divmod(rest, len(axis.values))
        places.append(place)
    places.reverse()
    if part == "anchor":
        return {"links": LINKS[places[0]], "factor": FACTORS[places[1]]}
    queue = queue_name(settings)
    if part == "sensitivity":
        return {"queue": queue, "choice": CHOICES[places[1]]}
    if part == "hosts":
        return {"queue": queue, "hosts": settings["fabric.host_queue"]["limit"]}
    if part == "ect":
        every = "all packets" if settings["tcp.ecn_all_packets"] else "data only"
        return {"queue": queue, "ecn_capable": every, "tcp": settings["tcp.profile"]}
    return {"queue": f"{queue}; {settings['tcp.profile']}", "tcp": settings["tcp.profile"]}


def grid_labels(settings: Mapping[str, Any]) -> Labels:
    """Return the labels of a configuration of a grid."""
    kind = settings["fabric.queue.kind"]
    setting = ""
    if kind == "adaptive-red":
        setting = settings["fabric.queue.target"]
    elif kind == "red":
        ends = (settings[f"fabric.queue.{end}"].split()[0] for end in ("min", "max"))
        setting = "–".join(ends)
        kind = "red" if settings["fabric.queue.weight"] == 1 else "averaged-red"
    elif kind == "codel":
        setting = f"{settings['fabric.queue.target']}/{settings['fabric.queue.interval']}"
    plain = "TCP-ECN" if settings.get("tcp.ecn", "on") == "on" and setting else "TCP"
    if kind == "averaged-red":
        plain = "TCP"
    return {
        "queue": kind,
        "setting": setting,
        "protection": settings.get("fabric.queue.protection", "default" if setting else ""),
        "transport": "DCTCP" if settings.get("tcp.congestion") == "dctcp" else plain,
        "buffer": depth(settings["fabric.queue.limit"]),
        "reduces": str(settings.get("workload.terasort.job.0.reduces", 159)),
    }


def depth(limit: str) -> str:
    """Return the name of a buffer size, such as ``shallow``."""
    return {"200 packets": "shallow", "2000 packets": "deep"}[limit]


def queue_name(settings: Mapping[str, Any]) -> str:
    """Return the name of a point's queue discipline, as in the rows of the tables."""
    queue = settings["fabric.queue"]
    kind, target = queue["kind"], queue.get("target")
    if kind == "step-marking":
        return f"DCTCP, {queue['threshold']}"
    if kind in {"fq-codel", "pie"}:
        name = {"fq-codel": "FQ-CoDel", "pie": "PIE"}[kind]
        data_centre = target == "500 us"
        return f"{name} {target}" if data_centre else f"{name} by its RFC"
    name = {"adaptive-red": "RED", "codel": "CoDel", "drop-tail": "DropTail"}[kind]
    words = [name, *([target] if target else [])]
    if target:
        ecn = settings.get("tcp.ecn", "on") == "on"
        words.append(queue.get("protection", "default") if ecn else "without ECN")
    return f"{' '.join(words)}, {depth(queue['limit'])}"


def against(labels: Labels) -> tuple[Labels, Labels] | None:
    """Return the labels of the references of a point: for its runtime, and for its latency.

    As in the thesis, runtime and throughput are relative to shallow DropTail, and latency to
    DropTail with the same buffers.
    """
    if "buffer" in labels:
        base = {**labels, "queue": "drop-tail", "setting": "", "protection": "", "transport": "TCP"}
        base["reduces"] = "159"
        return {**base, "buffer": "shallow"}, base
    if {"choice", "hosts"} & {*labels}:
        deep = labels["queue"].rpartition(", ")[2]
        return {**labels, "queue": "DropTail, shallow"}, {**labels, "queue": f"DropTail, {deep}"}
    return None


def table_of(points: Sequence[Point]) -> pl.DataFrame:
    """Return means and intervals by point and metric, some relative to DropTail."""
    by_labels = {tuple(point.labels.items()): point for point in points}

    def relative(point: Point) -> dict[str, list[float]]:
        bases = against(point.labels)
        if bases is None or point.labels.get("reduces", "159") != "159":
            return {}
        shallow, same = (by_labels[tuple(labels.items())].runs for labels in bases)
        runtime = ratios(point.runs, shallow, "runtime_s")
        return {
            "runtime": runtime,
            "throughput": [1 / each for each in runtime],
            "latency": ratios(point.runs, same, "latency_us"),
        }

    return averages(points, relative)


def finish(part: Part, store: Store, read: bool) -> None:
    """Write the table of a part (from the store if ``read``), and draw its pictures."""
    kept = kept_in(CHAPTERS.get(part.name, HERE), part.name)

    def made() -> pl.DataFrame:
        return table_of(points_of(part, store, numbers_of))

    table = kept_table(kept / f"{part.name}.parquet", made if read else None)
    drawn = {*table.filter(pl.col("n") > 0)["tcp"]} if part.name in CHAPTERS else set()
    missing = tuple(f"_{tcp}" for tcp in ("plain", "linux") if drawn and tcp not in drawn)
    pictures = PICTURES.get(part.name, {}).items()
    panels.keep({name: draw for name, draw in pictures if not name.endswith(missing)}, table, kept)
    if part.name == "chapter6":
        best = [front(each) for _, each in configurations(table).group_by("tcp")]
        ordered = pl.concat(best).sort("tcp", "runtime_s", descending=[True, False])
        keep_table(ordered, kept / "front.csv")


def main(arguments: Sequence[str]) -> None:
    """Run and draw the parts named, or all of them."""
    parts: Mapping[str, Callable[[], Part]] = {
        name: partial(part_of, name) for name in (*CHAPTERS, *STUDIES)
    }
    command(arguments, parts, finish)


if __name__ == "__main__":
    main(sys.argv[1:])
