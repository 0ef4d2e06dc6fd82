"""Collection of the files and runs of a new bundle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest import core, shipped
from eastwest.bundle import archive, environment
from eastwest.bundle.form import (
    MANIFEST,
    MOST_FILES,
    README,
    File,
    Manifest,
    Mechanism,
    Run,
    clash,
    name_problem,
)
from eastwest.errors import InputError, did_you_mean
from eastwest.traces.form import ABOUT
from eastwest.units import clean

Content = archive.Content

#: Default maximum number of bytes of an input file that is put into a bundle.
LARGEST_INPUT = 50_000_000
#: Name of the file with the licence of the shipped traces.
_SWIM_LICENCE = "licences/swim.txt"


@dataclass(frozen=True)
class _Entry:
    content: Content
    file: File


@dataclass
class Contents:
    """Files and runs of a new bundle.

    Input files above ``largest_input`` bytes are described by size and hash only. ``origins`` are
    texts about the origin and licence of input files, by the name of the file or of its folder.
    """

    name: str
    kind: str
    largest_input: int = LARGEST_INPUT
    origins: Mapping[str, str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    mechanisms: list[Mechanism] = field(default_factory=list)
    #: Facts for the page for people, by name; the template readme.py has their use.
    facts: dict[str, Any] = field(default_factory=dict)
    #: Sentences for the user who makes the bundle.
    remarks: list[str] = field(default_factory=list)
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _hashes: dict[tuple[int, ...], tuple[int, str]] = field(default_factory=dict)

    def add(self, path: str, content: Content, role: str, origin: str = "", most: int = 0) -> None:
        """Add a file; a file of more than ``most`` bytes (0: no limit) is only described.

        Raises ``InputError`` for a link: folders of others can have links to private files.
        """
        if isinstance(content, Path) and content.is_symlink():
            raise InputError(f"{content} is a link: a bundle contains only regular files")
        if problem := name_problem(path):
            raise InputError(f"{clean(path)!r} cannot be in a bundle: its name {problem}")
        if len(self._entries) >= MOST_FILES:
            raise InputError(f"a bundle has at most {MOST_FILES:,} files")
        size, sha256 = self._hashed(content)
        inside = not most or size <= most
        self._entries[path] = _Entry(content, File(path, size, sha256, role, origin, inside))

    def add_text(self, path: str, text: str, role: str) -> None:
        """Add a text file."""
        self.add(path, text.encode(errors="replace"), role)

    def add_inputs(self, folder: str, inputs: Mapping[str, Content]) -> tuple[str, ...]:
        """Add input files of a scenario in ``folder``, and return their paths in the bundle."""
        for name, content in inputs.items():
            path = f"{folder}/{name}"
            if path not in self._entries:
                self.add(path, content, "input", self._origin(name, inputs), self.largest_input)
        return tuple(sorted(f"{folder}/{name}" for name in inputs))

    def folder_for(self, inputs: Mapping[str, Content]) -> str:
        """Return the folder for a scenario, in which its input files have no other content.

        This is ``runs``, or else the first of ``runs/2``, ``runs/3`` and so on that fits.
        """
        number, folder = 1, "runs"
        wanted = {name: self._hashed(content)[1] for name, content in inputs.items()}
        while any(
            self._sha256(f"{folder}/{name}") not in {"", each} for name, each in wanted.items()
        ):
            number += 1
            folder = f"runs/{number}"
        return folder

    def _hashed(self, content: Content) -> tuple[int, str]:
        """Return (size in bytes, SHA-256) of a content; equal files are read once.

        The run store has one file, with a name in each run, for all runs with an equal input.
        """
        if isinstance(content, bytes):
            return archive.hashed(content)
        state = content.stat()
        key = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)
        if key not in self._hashes:
            self._hashes[key] = archive.hashed(content)
        return self._hashes[key]

    def _sha256(self, path: str) -> str:
        """Return the SHA-256 of a file of the bundle; empty if there is no such file."""
        return self._entries[path].file.sha256 if path in self._entries else ""

    def _origin(self, name: str, inputs: Mapping[str, Content]) -> str:
        """Return the origin of an input file; empty if it is unknown.

        This is the text of the author for the file or its folder, that of a shipped trace, or the
        names of the files from which ``eastwest trace import`` made the trace.
        """
        stated = [self.origins[step] for step in reversed(name.split("/")) if step in self.origins]
        if stated:
            return stated[0]
        for known, path in shipped.traces().items():
            if self._hashed(shipped.content(path)) == self._hashed(inputs[name]):
                self.add(_SWIM_LICENCE, path.with_name("LICENSE"), "licence")
                return (
                    f"trace {known}, which is a part of Eastwest, of the SWIM workload repository; "
                    f"licence: {_SWIM_LICENCE}"
                )
        about = inputs.get(f"{name.rpartition('/')[0]}/{ABOUT}")
        return _imported_from(about) if about is not None else ""

    def finished(self, page: str) -> tuple[Manifest, dict[str, Content]]:
        """Return the manifest, and the content of each file by path; ``page`` is the README."""
        self.add_text(README, page, "page")
        files = tuple(self._entries[path].file for path in sorted(self._entries))
        if found := clash(file.path for file in files):
            raise InputError(f"{found[0]!r} and {found[1]!r} are one name in some file systems")
        made = Manifest(
            name=self.name,
            kind=self.kind,
            version=core.version(),
            build=core.build(),
            machine=environment.machine(),
            files=files,
            runs=tuple(self.runs),
            mechanisms=tuple(self.mechanisms),
        )
        content = {path: each.content for path, each in self._entries.items() if each.file.inside}
        return made, {**content, MANIFEST: made.text().encode()}

    def unused_origins(self) -> tuple[str, str] | None:
        """Return (name, hint) of an entry of ``origins`` that is no input file, or None."""
        inputs = [each.file.path for each in self._entries.values() if each.file.role == "input"]
        names = {step for path in inputs for step in path.split("/")}
        unused = next((name for name in self.origins if name not in names), None)
        return None if unused is None else (unused, did_you_mean(unused, names))

    @property
    def files(self) -> list[File]:
        """Descriptions of all files that were added, in order of their paths."""
        return [self._entries[path].file for path in sorted(self._entries)]

    def add_lock(self) -> None:
        """Add the versions of Python and Rust packages."""
        self.add_text(environment.REQUIREMENTS, environment.requirements(), "lock")
        lock = environment.cargo_lock()
        if lock is not None:
            self.add(environment.CARGO_LOCK, lock, "lock")


def _imported_from(about: Content) -> str:
    """Return from which files a trace was imported, by the content of its ``trace.json``."""
    try:
        content = json.loads(about if isinstance(about, bytes) else about.read_bytes())
        files = [f"{one['name']} (SHA-256 {one['sha256']})" for one in content["files"]]
        more = f" and {len(files) - 3} more" if len(files) > 3 else ""
        return f"imported from files of format {content['source']}: {', '.join(files[:3])}{more}"
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""


def inputs_in(folder: Path) -> dict[str, Content]:
    """Return the input files of a result folder, by the names that its scenario has for them.

    Raises ``InputError`` where one is a link to a folder or a device.
    """
    found: dict[str, Content] = {}
    for path in sorted((folder / "inputs").rglob("*")):
        if path.is_file():
            found[path.relative_to(folder).as_posix()] = path
        elif not path.is_dir() or path.is_symlink():
            raise InputError(f"{path} is not a regular file: a bundle cannot contain it")
    return found


def run_of(
    summary: Mapping[str, Any],
    *,
    name: str,
    scenario: str,
    summary_path: str,
    inputs: Sequence[str],
    mechanisms: Sequence[Mechanism],
    settings: Mapping[str, str] | None = None,
    used_by: Sequence[str] = (),
    quick: bool = True,
) -> Run:
    """Return the entry of a run in the manifest, from the summary of its result.

    Raises ``InputError`` for a run that was stopped early.
    """
    if "stopped_early" in summary:
        raise InputError(
            f"run {name} was stopped early, because it surely misses a goal: a bundle has complete "
            "runs only. Repeat the run or the sweep without stop_when_missed"
        )
    options = "".join(f" --with {one.path}" for one in mechanisms)
    return Run(
        name=name,
        scenario=scenario,
        summary=summary_path,
        seed=int(summary.get("seed", 0)),
        digest=str(summary.get("digest", "")),
        format=int(summary.get("format", 1)),
        version=str(summary.get("version", "")),
        command=f"eastwest run {scenario}{options} --out results/{name}",
        inputs=tuple(inputs),
        settings=settings or {},
        used_by=tuple(used_by),
        quick=quick,
        cpu_s=float(summary.get("cpu_s", 0.0)),
        peak_rss_mb=float(summary.get("peak_rss_mb", 0.0)),
    )
