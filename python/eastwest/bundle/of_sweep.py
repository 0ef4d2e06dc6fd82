"""The bundle of a sweep: its folder, and scenario, inputs and summary of each run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eastwest.bundle import own_code
from eastwest.bundle.contents import Contents, inputs_in, run_of
from eastwest.errors import InputError
from eastwest.results import Result
from eastwest.store import Store
from eastwest.sweep.tables import SweepResult
from eastwest.sweep.values import text

#: Folder of the sweep's own files in the bundle.
FOLDER = "sweep"
_TABLES = ("runs", "points", "comparisons", "costs")
_TEXTS = ("sweep.toml", "scenario.toml", "failures.json")
_MOST_NAMED = 3


@dataclass(frozen=True)
class Stored:
    """A run of a sweep in the run store: number and settings of the point, seed, and the result."""

    point: int
    settings: dict[str, str]
    seed: int
    key: str
    result: Result


def collect(
    contents: Contents,
    sweep: SweepResult,
    mechanisms: list[Path],
    pictures: bool,
    store: Path | None,
) -> None:
    """Add the folder of a sweep and its runs to a bundle."""
    summary = sweep.summary
    chosen = Store(store or summary["store"])
    found, missing = stored(sweep, chosen)
    if missing:
        raise InputError(
            f"the run store {chosen.path} lacks {missing} of {missing + len(found)} runs of "
            f"{sweep.path}: simulate them again with eastwest sweep {sweep.path}/sweep.toml "
            f"--resume --out {sweep.path}, or name another store with --store"
        )
    for name in _TEXTS:
        if (sweep.path / name).is_file():
            contents.add(f"{FOLDER}/{name}", sweep.path / name, "table")
    for name in _TABLES:
        contents.add(f"{FOLDER}/{name}.parquet", sweep.path / f"{name}.parquet", "table")
    # The path of the store belongs to the machine on which the sweep ran.
    content = {**summary, "store": ""}
    contents.add_text(f"{FOLDER}/summary.json", json.dumps(content, indent=2) + "\n", "table")
    own_code.add(contents, own_code.wanted(one.result.summary for one in found), mechanisms)
    first = {one.point: one.seed for one in reversed(found)}
    for one in found:
        name = f"p{one.point}-s{one.seed}"
        add_run(contents, name, one, quick=first[one.point] == one.seed)
    failed = len(sweep.failures)
    if failed:
        contents.remarks.append(
            f"{failed} runs of the sweep failed; they are in failures.json only"
        )
    if not summary.get("complete", True):
        contents.remarks.append("the sweep was interrupted: the bundle has the runs that finished")
    axes = [path for axis in summary["axes"] for path in axis["paths"]]
    contents.facts |= {"points": summary["points"], "axes": axes, "pictures": pictures}
    if pictures:
        from eastwest.report.sweeps import sweep_page  # noqa: PLC0415  slow to load

        contents.add_text(f"{FOLDER}/report.html", sweep_page(sweep), "picture")


def stored(sweep: SweepResult, store: Store) -> tuple[list[Stored], int]:
    """Return (runs of a sweep that the run store has, number of runs that it lacks)."""
    found, missing = [], 0
    for point, seed, key in sweep.runs.select("point", "seed", "key").iter_rows():
        result = store.find(str(key))
        if result is None or not (result.path / "scenario.toml").is_file():
            missing += 1
            continue
        settings = {path: text(value) for path, value in sweep.settings(int(point)).items()}
        found.append(Stored(int(point), settings, int(seed), str(key), result))
    return found, missing


def add_run(
    contents: Contents,
    name: str,
    one: Stored,
    *,
    used_by: Sequence[str] = (),
    quick: bool = True,
) -> None:
    """Add scenario, summary and input files of a stored run to a bundle."""
    folder = one.result.path
    inputs = inputs_in(folder)
    below = contents.folder_for(inputs)
    scenario, summary = f"{below}/{name}.toml", f"{below}/{name}.json"
    contents.add(scenario, folder / "scenario.toml", "scenario")
    contents.add(summary, folder / "summary.json", "summary")
    contents.runs.append(
        run_of(
            one.result.summary,
            name=name,
            scenario=scenario,
            summary_path=summary,
            inputs=contents.add_inputs(below, inputs),
            mechanisms=contents.mechanisms,
            settings=one.settings,
            used_by=used_by,
            quick=quick,
        )
    )
