"""Checks whether all files and folders with a final name that a command left are complete.

This is a program of its own, because the disturbed processes are forked from a process that must
have no running threads. Requests from standard input, one JSON object per line, are answered with
``{"problems": [...], "digests": {...}, "left": [...]}``. ``digests`` has the content of all final
files and folders by name; ``left`` are the temporary names.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

import eastwest as ew
from eastwest.formats import TABLES
from eastwest.observe.load import open_spans
from eastwest.sweep.tables import SweepResult
from eastwest.traces.load import open_trace

#: Keys of JSON files whose values may differ between two equal commands, for example times and
#: paths.
_DIFFERS = {"wall_s", "cpu_s", "peak_rss_mb", "cost", "date", "command", "store", "runs", "build"}
_TAILS = {".html": b"</html>", ".svg": b"</svg>", ".png": b"IEND\xaeB`\x82"}


def _whole_file(path: Path) -> bytes:
    """Return a file without values that differ between runs; raise an error if it is truncated."""
    data = path.read_bytes()
    if path.suffix == ".json":
        content = json.loads(data)
        if isinstance(content, dict):
            content = {key: value for key, value in content.items() if key not in _DIFFERS}
        return json.dumps(content, sort_keys=True).encode()
    if path.suffix == ".parquet":
        pl.read_parquet(io.BytesIO(data))
        return b"" if path.stem == "costs" else data
    tail = _TAILS.get(path.suffix)
    if not data or (tail is not None and not data.rstrip().endswith(tail)):
        raise ValueError(f"{path} is truncated")
    # Pictures contain the date when they were drawn, so their content is not compared.
    return data if path.suffix not in {".png", ".svg"} else b""


def _files(path: Path) -> Iterator[bytes]:
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        if not file.name.startswith(".partial-"):
            yield f"{file.relative_to(path)}\n".encode()
            yield _whole_file(file)


def _result(path: Path) -> Iterator[bytes]:
    """Yield the content of a result folder, in which all tables must be readable.

    A result may have no tables.
    """
    result = ew.load(path)
    yield result.digest.encode()
    there = {file.stem for file in path.glob("*.parquet")}
    missing = TABLES.keys() - there
    if missing and (there or path.name == "out"):
        raise ValueError(f"{path} has no tables {sorted(missing)}")
    for name in sorted(there):
        result.table(name)
    yield from _files(path)


def _sweep(path: Path) -> Iterator[bytes]:
    result = SweepResult(path)
    yield str(result.runs.height + result.points.height).encode()
    yield from _files(path)


def _store(path: Path) -> Iterator[bytes]:
    """Yield the content of a store: complete runs, and inputs that match their names."""
    for run in sorted((path / "runs").glob("*/*")):
        yield run.name.encode()
        yield from _result(run)
    for file in sorted((path / "inputs").glob("*")):
        if hashlib.sha256(file.read_bytes()).hexdigest() != file.name:
            raise ValueError(f"{file} is truncated")
    for file in sorted((path / "failures").glob("*.json")):
        raise ValueError(f"a run was noted as failed: {file.read_text()}")


def _trace(path: Path) -> Iterator[bytes]:
    open_trace(path)
    yield from _files(path)


def _spans(path: Path) -> Iterator[bytes]:
    open_spans(path)
    yield from _files(path)


def _file(path: Path) -> Iterator[bytes]:
    yield _whole_file(path)


_LOOKS: dict[str, Callable[[Path], Iterator[bytes]]] = {
    "result": _result,
    "sweep": _sweep,
    "store": _store,
    "trace": _trace,
    "spans": _spans,
    "files": _files,
    "file": _file,
}


def look(work: Path, leaves: list[tuple[str, str]]) -> dict[str, Any]:
    """Return problems, digests and temporary names of a working folder."""
    problems: list[str] = []
    digests: dict[str, str] = {}
    for name, kind in leaves:
        path = work / name
        if not path.exists():
            continue
        try:
            hashes = hashlib.sha256()
            for part in _LOOKS[kind](path):
                hashes.update(part)
            digests[name] = hashes.hexdigest()
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {error}")
    known = {name for name, _ in leaves} | {"tmp"}
    strange = [p.name for p in work.iterdir() if p.name not in known and not _temporary(p)]
    strange += [p.name for p in (work / "tmp").iterdir() if not _temporary(p)]
    problems += [f"{name}: not a temporary name" for name in strange]
    left = [str(p.relative_to(work)) for p in sorted(work.rglob("*")) if _temporary(p)]
    return {"problems": problems, "digests": digests, "left": left}


def _temporary(path: Path) -> bool:
    return path.name.startswith(".partial-")


def main() -> None:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        request = json.loads(line)
        answer = look(Path(request["work"]), request["leaves"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
