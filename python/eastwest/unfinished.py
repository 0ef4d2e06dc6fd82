"""Checkpoints of runs that are not finished, with the rows of their tables so far.

Layout, below the folder of the run store::

    unfinished/<key>/
        checkpoint                     state of the run, see crates/sim/src/checkpoint.rs
        flows-000000262144.parquet     rows of a table, named by the number of the first row
        spent.json                     time that this and earlier processes took for the run
        lock                           held by the process that simulates the run

Key: SHA-256 over the resolved scenario, the files it reads, and the version of Eastwest with the
hash of its compiled core. So another build never resumes a run of this build. The folder is removed
when the result is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from eastwest import core
from eastwest.files import store_folder, write_whole
from eastwest.results import parquet
from eastwest.units import span

#: Default wall time between two checkpoints of a run on the command line, in s.
EVERY_S = 120.0

#: Time between two checks for Ctrl-C while a checkpoint is written, in s.
LOOK_EVERY_S = 0.1

#: Maximum number of rows of a table in memory, some 30 MB; further rows are written to files.
MOST_ROWS = 1 << 18

_CHECKPOINT = "checkpoint"
_SPENT = "spent.json"
_LOCK = "lock"


class Keeper:
    """Store for the checkpoints of one run; also finds checkpoints that an earlier process wrote.

    ``every_s`` is the time between two checkpoints in seconds. With ``fresh``, the files of an
    earlier process are removed. ``say`` is called with one-line messages for the user.
    """

    def __init__(
        self,
        every_s: float,
        *,
        fresh: bool = False,
        folder: str | Path | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.every_s = every_s
        self.look_every_s = LOOK_EVERY_S
        self.most_rows = MOST_ROWS
        self.build = core.build()
        #: Simulated time of the latest checkpoint in seconds; None without a checkpoint.
        self.kept_s: float | None = None
        #: Wall and CPU time, in s, that earlier processes took for the run.
        self.earlier = {"wall_s": 0.0, "cpu_s": 0.0}
        self._fresh = fresh
        self._parent = store_folder(folder) / "unfinished"
        self._say = say
        self._folder: Path | None = None
        #: Folder of the run, also after ``close``.
        self._last: Path | None = None
        self._lock: int | None = None
        self._started = (time.perf_counter(), time.process_time())

    # The simulator calls the following methods, see ``core.Keeper``.

    def find(self, plan: str) -> str | None:
        """Return the path of a checkpoint to resume from; None if there is none.

        ``plan`` is a hash of all inputs of the run. The folder of the run, if it exists, is locked
        for this process. The result is also None if another process simulates this run.
        """
        folder = self._place_of(plan)
        try:
            if not folder.is_dir() or not self._enter(folder):
                return None
        except OSError:
            return None  # place() reports the error
        if self._fresh or not (folder / _CHECKPOINT).is_file():
            self._clear()
            return None
        return str(folder / _CHECKPOINT)

    def resume(self, simulated_s: float, rows: dict[str, int]) -> bool:
        """Return whether the run resumes from its checkpoint: all earlier rows must be on disk.

        ``rows`` is the number of rows of each table that were written before the checkpoint; later
        rows are removed. The user gets a message.
        """
        folder = self._here()
        for table, count in rows.items():
            if not self._cut(table, count):
                self.refuse(f"stored rows of the table {table} are missing")
                return False
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            spent = json.loads((folder / _SPENT).read_text(encoding="utf-8"))
            self.earlier = {name: max(0.0, float(spent[name])) for name in self.earlier}
        self.kept_s = simulated_s
        when = datetime.fromtimestamp((folder / _CHECKPOINT).stat().st_mtime)
        self._say(
            f"resumes from {span(simulated_s)} of simulated time, stored {when:%Y-%m-%d %H:%M} "
            "(--fresh starts from the beginning)"
        )
        return True

    def refuse(self, why: str) -> None:
        """Tell the user why a checkpoint cannot be used; remove it and all stored rows."""
        self.kept_s = None
        self._say(
            f"the checkpoint of an earlier run cannot be used, so the run starts from the "
            f"beginning: {why}"
        )
        self._clear()

    def place(self, plan: str) -> str | None:
        """Return the path for a new checkpoint; None where no checkpoint can be written.

        ``plan`` is a hash of all inputs of the run. At the first call, the folder of the run is
        made and locked; the user gets a message if that fails.
        """
        if self._folder is None:
            folder = self._place_of(plan)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                entered = self._enter(folder)
            except OSError as error:
                self.give_up(f"{folder}: {(error.strerror or str(error)).lower()}")
                return None
            if not entered:
                self.give_up("another process is simulating the same run")
                return None
            self._clear()
        return str(self._here() / _CHECKPOINT)

    def take(self, tables: core.Tables, first: int) -> None:
        """Write rows of tables to disk; ``first`` is the number, from 0, of the first row."""
        for name, columns in tables.items():
            write_whole(self._here() / f"{name}-{first:012}.parquet", parquet(columns))

    def writing(self) -> None:
        """Tell the user why the command continues after Ctrl-C, and how to end it at once."""
        self._say(
            "stopping: the state of the run is being written to disk, so that it can be resumed; "
            "press Ctrl-C again to end at once, without this checkpoint"
        )

    def kept(self, simulated_s: float) -> None:
        """Note that a checkpoint at this simulated time (s) was written; write ``spent.json``."""
        self.kept_s = simulated_s
        write_whole(self._here() / _SPENT, json.dumps(self.spent()).encode())

    def give_up(self, why: str) -> None:
        """Tell the user that no checkpoint can be written, and why."""
        self._say(f"no checkpoints are written: {why}")

    # The caller of the run uses the following methods.

    def spent(self) -> dict[str, float]:
        """Return the wall and CPU time that this and earlier processes spent on the run, in s."""
        wall, cpu = self._started
        return {
            "wall_s": self.earlier["wall_s"] + time.perf_counter() - wall,
            "cpu_s": self.earlier["cpu_s"] + time.process_time() - cpu,
        }

    @property
    def goes_on(self) -> bool:
        """Whether a later process can resume the run from a checkpoint."""
        return self._last is not None and (self._last / _CHECKPOINT).is_file()

    def parts(self, table: str) -> list[Path]:
        """Return the files with the first rows of a table, in order; later rows are in memory."""
        if self._folder is None:
            return []
        return sorted(self._folder.glob(f"{table}-{'[0-9]' * 12}.parquet"))

    def done(self) -> None:
        """Remove the files of the run, because its result is written."""
        if self._folder is not None:
            self._remove(self._folder)
        self.close()

    def close(self) -> None:
        """Release the lock for later processes; remove the files of a run without a checkpoint."""
        folder, self._folder = self._folder, None
        if folder is not None and not self.goes_on:
            self._remove(folder)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _place_of(self, plan: str) -> Path:
        key = hashlib.sha256(f"{plan}\n{self.build}".encode()).hexdigest()
        return self._parent / key

    def _here(self) -> Path:
        if self._folder is None:
            raise RuntimeError("the folder for checkpoints of the run is not yet known")
        return self._folder

    def _enter(self, folder: Path) -> bool:
        """Lock the folder of a run for this process, and return True.

        Returns False if another process has the lock, or has just removed the folder.
        """
        path = folder / _LOCK
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A process that has just finished the run has removed the folder with its lock.
            held = path.stat().st_ino == os.fstat(lock).st_ino
        except OSError:
            held = False
        if not held:
            os.close(lock)
            return False
        self._lock, self._folder, self._last = lock, folder, folder
        return True

    def _remove(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty: other runs have checkpoints, too
            self._parent.rmdir()

    def _clear(self) -> None:
        for path in self._here().iterdir():
            if path.name != _LOCK:
                path.unlink()

    def _cut(self, table: str, rows: int) -> bool:
        """Remove files of a table with rows after the checkpoint; return whether no row is missing.

        ``rows`` is the number of rows of the table that were written before the checkpoint.
        """
        there = 0
        for part in self.parts(table):
            if int(part.stem[-12:]) >= rows:
                part.unlink()
            elif int(part.stem[-12:]) != there:
                return False
            else:
                there += _height(part)
        return there == rows


def _height(part: Path) -> int:
    """Return the number of rows of a Parquet file from its footer; -1 where it cannot be read."""
    import polars as pl  # noqa: PLC0415  large: not before it is needed

    try:
        return int(pl.scan_parquet(part, glob=False).select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError):
        return -1
