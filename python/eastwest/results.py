"""Result folders: complete or absent on disk, read as polars frames.

A folder holds the resolved ``scenario.toml`` and the traces that it reads, so that the folder can
be run again, ``summary.json`` and one Parquet file per table.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import json
import os
import re
import shutil
import struct
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from eastwest import formats
from eastwest.core import Column, CoreResult
from eastwest.files import polars_writes, sync_folder
from eastwest.folders import NewFolder
from eastwest.interrupts import delayed
from eastwest.partial import Partial
from eastwest.result_tables import Tables

if TYPE_CHECKING:
    import polars as pl

#: Default parent of result folders, relative to the working directory.
DEFAULT_PARENT = Path("results")

#: Codes of the types of columns, valid for ``struct`` and numpy.
_CODES = {"u8": "B", "u32": "I", "u64": "Q", "i64": "q", "f64": "d"}
#: Maximum number of bytes of a column that is made without numpy, which takes 0.1 s to import.
_FEW_BYTES = 1 << 18
_LONGEST_NAME = 80

#: Function that returns, for the name of a table, the files with its first rows, in order.
Parts = Callable[[str], list[Path]]


def _no_parts(_: str) -> list[Path]:
    return []


#: Maximum number of different texts that an index of one byte can number.
_ONE_BYTE = 256


class Result(Tables):
    """A result folder, opened for reading.

    Tables are read when first used. Units are in the columns' names: ``fct_us`` is microseconds,
    ``rate_bps`` bits per second.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "summary.json").is_file():
            raise FileNotFoundError(f"{self.path} is not a result folder: it has no summary.json")

    def __repr__(self) -> str:
        return f"Result({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """Return the main results as HTML, which notebooks show."""
        from eastwest import cards  # noqa: PLC0415  only for notebooks

        return cards.of_result(self)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Main results of the run, as printed by ``eastwest run --json``."""
        return formats.read_summary(self.path)

    @property
    def format(self) -> int:
        """Version of the result format; older results are read as if their format were current."""
        return int(self.summary["format"])

    @property
    def digest(self) -> str:
        """Hash of all events of the run."""
        return str(self.summary.get("digest", ""))

    @cached_property
    def scenario(self) -> str:
        """The resolved scenario, as TOML."""
        return (self.path / "scenario.toml").read_text(encoding="utf-8")

    @cached_property
    def exchanges(self) -> pl.DataFrame:
        """One row for each request with its response, from the table ``flows``.

        Columns: see :func:`eastwest.exchanges.exchanges`.
        """
        from eastwest.exchanges import exchanges  # noqa: PLC0415  large: polars

        return exchanges(self.flows.lazy()).collect()

    def table(self, name: str) -> pl.DataFrame:
        """Return the table ``name``, such as ``links``, with the columns of the current format."""
        return formats.read_table(self.path, name, self.format)


def load(path: str | Path) -> Result:
    """Open the result folder of a run, of this or an older version of the result format.

    Raises ``FileNotFoundError`` where ``path`` is no result folder, and ``InputError`` where
    ``summary.json`` is damaged or of a newer version.
    """
    result = Result(path)
    _ = result.format
    return result


class TargetFolder:
    """Path of a new result: a named folder, or the next free name under ``results/``."""

    def __init__(
        self, out: Path | None = None, force: bool = False, *, durable: bool = True
    ) -> None:
        """``durable`` is false for a temporary result, which need not survive a power failure."""
        self.out = out
        self.force = force
        self.durable = durable

    def _named(self, out: Path) -> NewFolder:
        return NewFolder(out, self.force, "a result folder", "summary.json", parents=True)

    def check(self) -> None:
        """Raise ``FolderError`` where the folder cannot be written; called before a simulation."""
        self._named(self.out if self.out is not None else DEFAULT_PARENT / "any").check()

    def place(self, made: Partial, stem: str) -> Path:
        """Rename the finished folder to its final name; return the path.

        If no folder was named, the final name is ``stem``, or the first free name of ``stem-2``,
        ``stem-3`` and so on. An interrupt during the renaming raises ``FinishedInterrupt`` after
        it.
        """
        if self.out is not None:
            self._named(self.out).place(made)
            return self.out
        number = 1
        while True:
            name = stem if number == 1 else f"{stem}-{number}"
            target = made.path.parent / name
            if not os.path.lexists(target):
                try:
                    with delayed(f"the result is complete: {_relative(target)}"):
                        made.path.rename(target)
                        made.close()
                except OSError as error:
                    if error.errno not in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}:
                        raise
                else:
                    return target
            number += 1


def folder_stem(scenario: str, seed: int) -> str:
    """Return a folder name made of a scenario's name, which may be any text, and a seed."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", scenario).strip("-.")[:_LONGEST_NAME]
    return f"{safe or 'run'}-{seed}"


def frame(columns: list[Column]) -> pl.DataFrame:
    """Return a polars frame made of the columns that the simulator core returns."""
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    if not any(data[0] if isinstance(data, tuple) else data for _, _, data in columns):
        return _empty(tuple((name, dtype) for name, dtype, _ in columns)).clone()
    series = []
    for name, dtype, data in columns:
        if isinstance(data, list):
            series.append(pl.Series(name, data, dtype=pl.String))
        elif isinstance(data, tuple):
            index, texts = data
            rows = _numbers(name, index, "u8" if len(texts) <= _ONE_BYTE else "u32")
            series.append(pl.Series(name, texts, dtype=pl.String).gather(rows))
        else:
            series.append(_numbers(name, data, dtype))
    return pl.DataFrame(series)


@functools.cache
def _empty(columns: tuple[tuple[str, str], ...]) -> pl.DataFrame:
    """Return an empty frame with columns of these names and types of the simulator core.

    Most tables of most runs are empty, and a frame of 20 columns takes 0.5 ms.
    """
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    return pl.DataFrame(schema={name: formats.polars_type(dtype) for name, dtype in columns})


def _numbers(name: str, data: bytes, dtype: str) -> pl.Series:
    """Return a polars column of the little-endian numbers in ``data``; long data are not copied."""
    import polars as pl  # noqa: PLC0415

    if len(data) <= _FEW_BYTES:
        code = _CODES[dtype]
        values = struct.unpack(f"<{len(data) // struct.calcsize(f'<{code}')}{code}", data)
        return pl.Series(name, values, dtype=formats.polars_type(dtype))
    import numpy as np  # noqa: PLC0415  only for long columns

    return pl.Series(name, np.frombuffer(data, dtype=f"<{_CODES[dtype]}"))


def parquet(columns: list[Column]) -> bytes:
    """Return columns of the simulator core as the bytes of a Parquet file."""
    # The table is made in memory, so that a full disk raises an OSError with an error number, and
    # not an exception of polars.
    stream = io.BytesIO()
    frame(columns).write_parquet(stream)
    return stream.getvalue()


def _join(parts: list[Path], columns: list[Column], target: Path) -> None:
    """Write a table to ``target``, part by part: first rows from files, the rest from memory."""
    import polars as pl  # noqa: PLC0415  large: not before the simulation has run

    first = [pl.scan_parquet(part, glob=False) for part in parts]
    with polars_writes(target):
        pl.concat([*first, frame(columns).lazy()]).sink_parquet(target)


def write_result(
    target: TargetFolder,
    raw: CoreResult,
    summary: dict[str, Any],
    parts: Parts = _no_parts,
) -> Result:
    """Write a result folder and return it, opened for reading.

    ``parts`` returns the files with the first rows of a table. The files of the result are written
    into a folder with a temporary name beside the target, which is forced to disk (unless the
    result is temporary) and then renamed.
    On any error or Ctrl-C this folder is removed.
    """
    stem = folder_stem(str(summary.get("scenario", "run")), int(summary.get("seed", 0)))
    parent = (target.out.parent if target.out is not None else DEFAULT_PARENT).absolute()
    made: list[Path] = []
    try:
        _make_parents(parent, made)
        with Partial.folder(parent) as partial:
            fill_folder(partial.path, raw, summary, parts)
            if target.durable:
                sync_folder(partial.path)
            final = target.place(partial, stem)
    except BaseException as error:
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(parent)
        raise
    return Result(_relative(final))


def _make_parents(parent: Path, made: list[Path]) -> None:
    """Create the missing folders of the path ``parent``, and append each to ``made``."""
    for folder in reversed([parent, *parent.parents]):
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            made.append(folder)


def fill_folder(
    folder: Path,
    raw: CoreResult,
    summary: dict[str, Any],
    parts: Parts = _no_parts,
    indent: int | None = 2,
) -> None:
    """Write the files of a result into a new folder.

    ``indent`` is that of ``summary.json``; None, on one line, is much faster. ``parts`` returns the
    files with the first rows of a table; ``raw`` has the other rows.
    """
    (folder / "scenario.toml").write_text(raw["scenario_toml"], encoding="utf-8")
    for name, content in raw["attached"]:
        steps = PurePosixPath(name).parts
        if name in {"", "scenario.toml", "summary.json"} or {"/", "..", "."} & {*steps, name}:
            raise ValueError(f"the simulator attached a file with an impossible name: {name!r}")
        target = folder.joinpath(*steps)
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copyfile(content, target)
        else:
            target.write_bytes(content)
    for name, content in raw["files"]:
        if name != Path(name).name:
            raise ValueError(f"the simulator made a file with an impossible name: {name!r}")
        (folder / name).write_bytes(content)
    for name, columns in raw["tables"].items():
        file = folder / f"{name}.parquet"
        if before := parts(name):
            _join(before, columns, file)
        else:
            file.write_bytes(parquet(columns))
    text = json.dumps(formats.stamped(summary), indent=indent, allow_nan=False, ensure_ascii=False)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


def _relative(path: Path) -> Path:
    """Return ``path`` relative to the working directory, or unchanged if it is elsewhere."""
    with contextlib.suppress(ValueError):
        return path.relative_to(Path.cwd())
    return path


def pick(tree: Any, *path: str) -> float | None:
    """Return a number of a nested mapping by its keys; None if it is missing or no number."""
    for key in path:
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return float(tree) if isinstance(tree, (int, float)) else None
