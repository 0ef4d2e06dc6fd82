"""The run store: a folder of finished runs, each under a hash of all inputs of its result.

Key: SHA-256 over the resolved scenario without its seed, the files it reads, the seed, the version
of Eastwest with the hash of its compiled core, and the version of the result format. So equal keys
mean equal results; sweeps and claims that need a run with equal inputs share it, and a run that
another build has made is never used. A run that a goal has stopped early has another key, which
also depends on the limits that can stop it: it is never used in place of a complete run.

Layout, below ``.eastwest/store`` or ``$EASTWEST_STORE``::

    runs/ab/abcd…/          a result folder; without tables where only the summary was kept
    inputs/<SHA-256>        files that scenarios read, linked into the runs that used them
    failures/<key>.json     runs that failed, with their message
    costs.jsonl             one line per run: time, memory and packet-hops, for estimates
    partial/                files and folders being written, see ``eastwest.partial``
    unfinished/             checkpoints of runs not finished, see ``eastwest.unfinished``

A run's folder is complete or absent: it is written under ``partial/``, forced to disk and then
renamed. A run that can be read loses no file; a damaged folder is replaced by a new run. Several
processes may use one store at once.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict, cast

from eastwest import core, shipped
from eastwest.errors import FolderError, InputError
from eastwest.files import store_folder, sync_file, sync_folder, write_whole
from eastwest.formats import RESULT_FORMAT, TABLES
from eastwest.partial import Partial, remove, remove_abandoned, temporary
from eastwest.results import Result, fill_folder
from eastwest.run import (
    NO_GOALS,
    Setting,
    Source,
    as_overrides,
    load_source,
    may_have_goals,
    measured,
)
from eastwest.units import size, span

#: Function that makes a further file of a run's folder: maps the core's result to the file's bytes.
Extra = Callable[[core.CoreResult], bytes]

_MOST_COSTS_BYTES = 16_000_000


@dataclass(frozen=True)
class Plan:
    """Resolved scenario with its overrides: all inputs of a run except the seed."""

    source: Source
    overrides: core.Overrides
    #: Hash of the resolved scenario and of the files it reads.
    identity: str
    #: Hash of the scenario's text without overrides; runs with equal hashes have similar costs.
    family: str
    #: Whether the run simulates packets or flows (``packet``, ``flow``); empty if it is unknown.
    fidelity: str = ""
    #: Limits that stop the run early.
    stop: tuple[core.Stop, ...] = ()

    def key(self, seed: int) -> str:
        """Return the key, in the run store, of the complete run with this seed."""
        return self._key(seed)

    def keys(self, seed: int) -> tuple[str, ...]:
        """Return the keys under which the store may have a run that serves this plan.

        The first is the key of the complete run. If limits can stop the run early, the second is
        the key of the run that these limits have stopped.
        """
        stopped = [self._key(seed, f"stopped by {self.stop!r}")] if self.stop else []
        return (self._key(seed), *stopped)

    def _key(self, seed: int, *more: str) -> str:
        parts = ("eastwest run", self.identity, str(seed), core.build(), str(RESULT_FORMAT), *more)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class Cost(TypedDict):
    """Wall time, CPU time, memory and packet-hops of one run: a line of ``costs.jsonl``."""

    key: str
    identity: str
    family: str
    wall_s: float
    cpu_s: float
    peak_rss_mb: float
    packet_hops: int
    #: Whether packets or flows were simulated; lines of older versions lack it.
    fidelity: NotRequired[str]


class Expected(NamedTuple):
    """Sentence on a run's expected time and memory; ``known``: whether both are known."""

    sentence: str
    known: bool


def plan(
    scenario: str | Path | Source,
    set: Mapping[str, Setting] | core.Overrides | None = None,
) -> Plan:
    """Return the plan of a run: the resolved scenario with overrides, without a seed.

    Raises ``ScenarioError`` where the scenario is wrong.
    """
    source = scenario if isinstance(scenario, Source) else load_source(scenario)
    overrides = list(set) if isinstance(set, list) else as_overrides(set)
    if may_have_goals(source, overrides):
        # Goals do not change a run, so runs in the store are simulated without goals.
        overrides.append(NO_GOALS)
    # The seed is a separate part of the key, so any seed serves here.
    resolved = core.resolve(source.text, str(source.base_dir), str(shipped.DATA), overrides, 1)
    digest = hashlib.sha256(resolved["scenario_toml"].encode())
    for name, content in sorted(resolved["attached"]):
        digest.update(f"\n{name} {hashlib.sha256(content).hexdigest()}".encode())
    mode = str(tomllib.loads(resolved["scenario_toml"]).get("fidelity", ""))
    return Plan(source, overrides, digest.hexdigest(), family(source), mode)


def family(source: Source) -> str:
    """Return the hash of a scenario's text, which does not depend on overrides."""
    return hashlib.sha256(source.text.encode()).hexdigest()


class Store:
    """Folder of finished runs; the key of a run is a hash of all inputs that affect its result."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.path = store_folder(folder)

    @property
    def costs_file(self) -> Path:
        """Path of the file with the time and memory of each run."""
        return self.path / "costs.jsonl"

    def folder(self, key: str) -> Path:
        """Return the path of the folder for the run of this key, whether it exists or not."""
        return self.path / "runs" / key[:2] / key

    def find(self, key: str, *, tables: bool = False, files: tuple[str, ...] = ()) -> Result | None:
        """Return the run of this key; None if it is absent or damaged, or lacks files.

        With ``tables``, the run must have its tables. The run must have each of ``files`` (names).
        """
        folder = self.folder(key)
        if any(not (folder / name).is_file() for name in ("summary.json", *files)):
            return None
        if tables and not all((folder / f"{name}.parquet").is_file() for name in TABLES):
            return None
        result = Result(folder)
        try:
            return result if result.summary else None
        except InputError:
            return None

    def put(
        self,
        key: str,
        raw: core.CoreResult,
        summary: dict[str, Any],
        *,
        tables: bool = True,
        extra: Mapping[str, bytes] | None = None,
    ) -> Result:
        """Store a run, with its tables or only its summary; the folder is complete or absent.

        ``extra`` are further files by name. An existing run of this key stays in the store, and
        gets the files that it lacks. Raises ``OSError`` with the store's path if writing fails.
        """
        dropped: dict[str, Any] = {} if tables else {"tables": {}, "files": []}
        kept = cast(core.CoreResult, {**raw, "attached": [], **dropped})

        def fill(partial: Path) -> None:
            # Sweeps keep thousands of summaries, which programs read.
            fill_folder(partial, kept, summary, indent=2 if tables else None)
            for name, content in (extra or {}).items():
                (partial / name).write_bytes(content)

        return self._keep(key, fill, core.held(raw["attached"]))

    def take_in(
        self, key: str, files: Mapping[str, bytes], inputs: Sequence[tuple[str, bytes]]
    ) -> Result:
        """Store a run that another machine has computed.

        ``files`` are the files of the run's folder, ``inputs`` the files that its scenario read.
        """

        def fill(partial: Path) -> None:
            for name, content in files.items():
                if name != Path(name).name:
                    raise ValueError(f"a received run has a file of an impossible name: {name!r}")
                (partial / name).write_bytes(content)

        return self._keep(key, fill, inputs)

    def _keep(
        self, key: str, fill: Callable[[Path], None], inputs: Sequence[tuple[str, bytes]]
    ) -> Result:
        try:
            self._beside.mkdir(parents=True, exist_ok=True)
            with Partial.folder(self._beside) as partial:
                fill(partial.path)
                for name, content in inputs:
                    self._link_input(partial.path, name, content)
                sync_folder(partial.path)
                self._place(partial.path, self.folder(key))
        except OSError as error:
            if error.filename is None:
                error.filename = str(self.path)
            raise
        return Result(self.folder(key))

    def run(
        self,
        wanted: Plan,
        seed: int,
        *,
        tables: bool = True,
        extra: Mapping[str, Extra] | None = None,
        options: core.RunOptions | None = None,
    ) -> Result:
        """Return a run from the store, or simulate and store it.

        If limits of the plan stop the run early, it is stored under another key than a complete
        run. ``extra`` has a function for each further file of the run's folder, by name. Raises the
        exceptions of ``eastwest.run``. A run that fails leaves nothing in the store.
        """
        keys = wanted.keys(seed)
        extra = extra or {}
        for key in keys:
            found = self.find(key, tables=tables, files=tuple(extra))
            if found is not None:
                return found
        reset_peak()
        options = replace(options or core.RunOptions(), stop=wanted.stop)
        raw, summary = measured(wanted.source, wanted.overrides, seed, options)
        is_stopped = "stopped_early" in summary
        key = keys[-1] if is_stopped else keys[0]
        made = {name: make(raw) for name, make in extra.items()}
        result = self.put(key, raw, summary, tables=tables, extra=made)
        if not is_stopped:  # estimates of time are for complete runs
            self.record(wanted, key, summary)
        return result

    def record(self, wanted: Plan, key: str, summary: Mapping[str, Any]) -> None:
        """Append the time and memory of a run to ``costs.jsonl``."""
        cost: Cost = {
            "key": key,
            "identity": wanted.identity,
            "family": wanted.family,
            "wall_s": float(summary["wall_s"]),
            "cpu_s": float(summary["cpu_s"]),
            "peak_rss_mb": float(summary["peak_rss_mb"]),
            "packet_hops": int(summary["packet_hops"]),
            "fidelity": str(summary.get("fidelity", "")),
        }
        self.path.mkdir(parents=True, exist_ok=True)
        # A single unbuffered append: lines of several processes do not mix.
        with self.costs_file.open("ab", buffering=0) as file:
            file.write((json.dumps(cost) + "\n").encode())

    def costs(self, family: str | None = None) -> list[Cost]:
        """Return the costs of all runs, or of those with the hash ``family``; the newest last."""
        path = self.costs_file
        if not path.is_file():
            return []
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _MOST_COSTS_BYTES))
            lines = file.read(_MOST_COSTS_BYTES).splitlines()
        found: list[Cost] = []
        for line in lines:
            # Lines may be incomplete: the first line read, and a line cut off by a full disk.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                cost: Cost = json.loads(line)
                if family is None or cost["family"] == family:
                    found.append(cost)
        return found

    def expected(self, plan: Plan) -> Expected | None:
        """Return a sentence on a run's time and memory, from earlier runs; None without such runs.

        Earlier runs of the same scenario and settings count, or else earlier runs of the scenario
        with other settings. Packet-level runs take much longer than flow-level runs, so runs with
        other settings count only if their fidelity is that of the plan.
        """
        similar = self.costs(plan.family)
        same = [cost for cost in similar if cost["identity"] == plan.identity]
        chosen = same or [cost for cost in similar if cost.get("fidelity") == plan.fidelity]
        if not similar:
            return None
        if not chosen:
            other = f"{len(similar)} earlier run{'s' * (len(similar) > 1)} with other settings"
            reason = f"none of {other} is known to have fidelity = {plan.fidelity}"
            return Expected(f"time unknown: {reason}", known=False)
        walls = sorted(cost["wall_s"] for cost in chosen)
        low, high = span(walls[0]), span(walls[-1])
        took = low if low == high else f"{low} to {high}"
        peak = size(max(cost["peak_rss_mb"] for cost in chosen) * 1e6)
        basis = "with these settings" if same else "with other settings"
        plural = "s" * (len(chosen) > 1)
        runs = f"{len(chosen)} earlier run{plural} {basis}"
        said = f"running time about {took}, {peak} of memory ({runs})"
        return Expected(said, known=True)

    def failure(self, key: str) -> str | None:
        """Return the error message of a failed run by its key; None if the run did not fail."""
        try:
            content = json.loads((self.path / "failures" / f"{key}.json").read_text("utf-8"))
            return str(content["message"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put_failure(self, key: str, message: str) -> None:
        """Store the error message of a failed run; the run is then repeated on request only."""
        folder = self.path / "failures"
        folder.mkdir(parents=True, exist_ok=True)
        self._beside.mkdir(exist_ok=True)
        said = json.dumps({"message": message}).encode()
        write_whole(folder / f"{key}.json", said, self._beside)

    def forget_failure(self, key: str) -> None:
        """Remove the record of a failed run, so that it can be repeated."""
        (self.path / "failures" / f"{key}.json").unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove incomplete files and folders that dead processes of this machine left behind."""
        remove_abandoned(self._beside)

    def check(self) -> None:
        """Raise ``FolderError`` where the store cannot be written, before the simulation starts."""
        existing = next(p for p in (self.path, *self.path.parents) if p.exists())
        if not existing.is_dir():
            raise FolderError(f"{existing} is not a folder: it cannot hold the store of runs")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise FolderError(f"{existing} cannot be written to: it cannot hold the store of runs")

    @property
    def _beside(self) -> Path:
        """Folder for files and folders with temporary names."""
        return self.path / "partial"

    def _link_input(self, partial: Path, name: str, content: bytes) -> None:
        """Link a scenario's input file into a run's folder; equal files are stored once."""
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(f"the simulator attached a file with an impossible name: {name!r}")
        shared = self.path / "inputs" / hashlib.sha256(content).hexdigest()
        if not shared.is_file():
            shared.parent.mkdir(exist_ok=True)
            write_whole(shared, content, self._beside)
        target = partial / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(shared, target)
        except OSError:  # no hard links in this file system, or too many links to the file
            target.write_bytes(content)

    def _place(self, partial: Path, final: Path) -> None:
        final.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(10):
            try:
                partial.rename(final)
            except OSError as error:
                if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
                    raise
            else:
                sync_file(final.parent)
                return
            if self.find(final.name) is not None:
                _add_missing(partial, final)
                return
            # The rename comes first, so that a run's folder is complete or absent if this process
            # dies.
            retired = temporary(self._beside)
            with contextlib.suppress(FileNotFoundError):
                final.rename(retired)
            remove(retired)
        raise FolderError(f"{final} cannot be replaced: another process keeps writing it")


def reset_peak() -> None:
    """Reset the peak memory of this process, where the system can do this (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _add_missing(partial: Path, final: Path) -> None:
    """Move the files that a stored run lacks into its folder, one by one.

    The folder is not replaced as a whole, because other processes may be reading it.
    """
    for path in partial.iterdir():
        if path.is_file() and not (final / path.name).exists():
            path.replace(final / path.name)
    sync_file(final)
