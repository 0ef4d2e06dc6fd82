"""Repetition of the runs of a bundle, and the comparison of their digests.

Runs are simulated anew in processes. Files are unpacked into a temporary folder. Code of the bundle
is executed only if the caller allows it. A scenario that reads a file which is not an input of the
bundle is refused.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from eastwest import core, formats, shipped
from eastwest.bundle import compare
from eastwest.bundle.archive import Content, Opened, hashed, opened
from eastwest.bundle.form import File, Manifest, Run
from eastwest.errors import InputError, did_you_mean, in_one_line
from eastwest.mechanisms import source as rust_source
from eastwest.mechanisms.load import Recipe, load
from eastwest.partial import Partial
from eastwest.results import Result
from eastwest.run import Source
from eastwest.store import Plan, Store, plan
from eastwest.sweep import default_jobs
from eastwest.sweep.executor import Executor, State
from eastwest.sweep.executor import Run as Started
from eastwest.units import clean, plural

#: Results of the comparison of a run.
EQUAL, DIFFERS, FAILED = "equal", "differs", "failed"
_OTHER_DIGEST = "the summary in the bundle has another digest than bundle.json"
_LARGEST_SCENARIO = 64 * 1024 * 1024
_LARGEST_SUMMARY = 64 * 1024 * 1024
_BINDINGS = re.compile(r'(path\s*=\s*")[^"]*/crates/bindings(")')


@dataclass(frozen=True)
class Compared:
    """A repeated run: ``state`` is ``equal``, ``differs`` or ``failed``."""

    run: Run
    state: str
    #: Digest of the repeated run; empty if it failed.
    digest: str = ""
    #: Reason of a failure, or cause of a difference.
    message: str = ""
    fields: tuple[compare.Field, ...] = ()
    tables: tuple[compare.Table, ...] = ()


@dataclass(frozen=True)
class Options:
    """Options of a rerun; see ``Bundle.rerun``."""

    only: Sequence[str] = ()
    quick: bool = False
    jobs: int | None = None
    inputs: Path | None = None
    run_code: bool = False
    keep: Path | None = None
    progress: Callable[[State], None] = lambda _: None
    done: Callable[[Compared], None] = lambda _: None


def rerun(path: Path, options: Options) -> list[Compared]:
    """Simulate runs of a bundle again, and return them with the result of the comparison.

    Raises ``InputError`` where the bundle, or an input that is not inside it, cannot be used.
    """
    with opened(path) as found, ExitStack() as stack:
        manifest = found.manifest()
        runs = chosen(manifest, options, found.label)
        scratch = stack.enter_context(Partial.scratch()).path
        folder = scratch / "bundle"
        unpacked = _Unpacked(found, manifest, folder, options.inputs)
        unpacked.fetch(runs)
        recipe = _mechanisms(unpacked, runs, options.run_code, stack)
        store = Store(options.keep or scratch / "store")
        store.check()
        return _Reruns(unpacked, runs, store, recipe, options).all()


def chosen(manifest: Manifest, options: Options, label: str) -> list[Run]:
    """Return the runs that a pattern of ``only`` names (all without patterns).

    A pattern with ``*``, ``?`` or ``[…]`` is compared with the whole name of a run, or of a set of
    runs (``eeon/C5.1/droptail``); without these signs it may also be the beginning of the name.
    """
    runs = [run for run in manifest.runs if run.quick or not options.quick]
    if not options.only:
        return runs
    wanted: dict[str, Run] = {}
    for pattern in options.only:
        fitting = [
            run for run in runs if any(_fits(name, pattern) for name in (run.name, *run.used_by))
        ]
        if not fitting:
            names = [name for run in runs for name in (run.name, *run.used_by)]
            hint = (
                did_you_mean(pattern, names)
                or f"; the first run is {names[0] if names else 'none'}"
            )
            raise InputError(f"{label}: no run fits {clean(pattern, 100)!r}{hint}")
        wanted |= {run.name: run for run in fitting}
    return [run for run in runs if run.name in wanted]


def _fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or name.startswith(pattern)


class _Unpacked:
    """Files of a bundle, unpacked into a folder as runs need them."""

    def __init__(
        self, found: Opened, manifest: Manifest, folder: Path, inputs: Path | None
    ) -> None:
        self.found = found
        self.manifest = manifest
        self.folder = folder
        self._files = {file.path: file for file in manifest.files}
        self._inputs = inputs
        self._by_size: dict[int, list[Content]] | None = None

    def get(self, path: str) -> Path:
        """Unpack a file, and return its path."""
        target = self.folder / path
        if not target.is_file():
            file = self._listed(path)
            if path not in self.found.sizes:
                raise InputError(f"{self.found.label}: {clean(path)} is not inside the bundle")
            self.found.extract(path, self.folder, file.sha256)
        return target

    def _listed(self, path: str) -> File:
        file = self._files[path]
        if file.inside and path not in self.found.sizes:
            raise InputError(f"{self.found.label}: {clean(path)} is missing in the bundle")
        return file

    def text(self, path: str, most: int) -> bytes:
        """Return the content of a file after a check of its hash."""
        file = self._listed(path)
        data = self.found.read(path, most)
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise InputError(
                f"{self.found.label}: {clean(path)} was changed; eastwest bundle verify lists all "
                "changed files"
            )
        return data

    def fetch(self, runs: Sequence[Run]) -> None:
        """Unpack the scenarios and input files of runs."""
        missing = []
        for path in dict.fromkeys(path for run in runs for path in run.inputs):
            file = self._listed(path)
            if file.inside:
                self.get(path)
            elif not self._found(file):
                missing.append(file)
        if missing:
            raise InputError(_without(self.found.label, missing, self._inputs))
        for run in runs:
            self.get(run.scenario)

    def _found(self, file: File) -> bool:
        """Link an input file that is not in the bundle to the user's copy; return if there is one.

        The copy is recognised by size and SHA-256: a shipped trace, or a file in ``--inputs``.
        """
        if self._by_size is None:
            places: list[Content] = [shipped.content(path) for path in shipped.traces().values()]
            if self._inputs is not None:
                places += [path for path in self._inputs.rglob("*") if path.is_file()]
            self._by_size = {}
            for place in places:
                size = len(place) if isinstance(place, bytes) else place.stat().st_size
                self._by_size.setdefault(size, []).append(place)
        for place in self._by_size.get(file.size, []):
            if hashed(place)[1] == file.sha256:
                target = self.folder / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(place, bytes):
                    target.write_bytes(place)
                else:
                    _link(place, target)
                return True
        return False

    def allowed(self, run: Run) -> set[str]:
        """Return the SHA-256 of the files that the scenario of a run may read."""
        return {self._files[path].sha256 for path in run.inputs}


def _link(path: Path, target: Path) -> None:
    """Make ``target`` a second name of a file, or a copy where the file system has no such names.

    A symbolic link does not suffice: scenarios may not read files outside their folder.
    """
    try:
        target.hardlink_to(path.resolve())
    except OSError:
        shutil.copyfile(path, target)


def _without(label: str, missing: Sequence[File], folder: Path | None) -> str:
    """Return the message about input files that neither the bundle nor the user has."""
    first = missing[0]
    origin = f", from {clean(first.origin, 300)}" if first.origin else ""
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    where = (
        f"{folder} has no file with this SHA-256" if folder else "name their folder with --inputs"
    )
    return (
        f"{label}: the input file {clean(first.path)} ({first.size:,} bytes, SHA-256 "
        f"{first.sha256}{origin}){more} is not inside: {where}"
    )


def _mechanisms(
    unpacked: _Unpacked, runs: Sequence[Run], allowed: bool, stack: ExitStack
) -> Recipe | None:
    """Load the mechanisms of a bundle and return their recipe; None if there are none.

    Raises ``InputError`` where the user has not allowed the execution of their code.
    """
    manifest, folder = unpacked.manifest, unpacked.folder
    if not manifest.mechanisms or not runs:
        return None
    named = ", ".join(clean(one.path, 100) for one in manifest.mechanisms)
    if not allowed:
        raise InputError(
            f"{unpacked.found.label}: the runs need code of the bundle ({named}), which can "
            "do anything that you can do: read it, and allow its execution with --run-code"
        )
    for file in manifest.files:
        if file.role == "code" and file.path.startswith("mechanisms/"):
            unpacked.get(file.path)
    for one in manifest.mechanisms:
        if one.kind == "crate":
            _name_source(folder / one.path / "Cargo.toml")
    wanted, recipe = load([str(folder / one.path) for one in manifest.mechanisms])
    stack.enter_context(core.using(wanted))
    return recipe


def _name_source(manifest: Path) -> None:
    """Write the folder of the installed Rust source into the ``Cargo.toml`` of a crate."""
    source = rust_source.folder()
    if source is not None:
        right = rust_source.bindings(source.resolve()).as_posix()
        text = manifest.read_text(encoding="utf-8")
        manifest.write_text(_BINDINGS.sub(rf"\g<1>{right}\g<2>", text), encoding="utf-8")


class _Reruns(Executor[int]):
    """Executor of the runs of a bundle; the place of a run is its number."""

    def __init__(
        self,
        unpacked: _Unpacked,
        runs: Sequence[Run],
        store: Store,
        recipe: Recipe | None,
        options: Options,
    ) -> None:
        super().__init__(
            Source("", unpacked.folder, "bundle"),
            store,
            default_jobs() if options.jobs is None else options.jobs,
            dask=None,
            retry=True,
            mechanisms=recipe,
            progress=options.progress,
            say=lambda _: None,
            tables=unpacked.manifest.kind == "result",
        )
        self._unpacked = unpacked
        self._runs = runs
        self._tell = options.done
        self._compared: dict[int, Compared] = {}

    def typical_s(self) -> float | None:
        """Return the mean CPU time of the runs when the bundle was made; None if it is unknown."""
        return sum(run.cpu_s for run in self._runs) / max(1, len(self._runs)) or None

    def all(self) -> list[Compared]:
        """Simulate all runs, and return them in the order of the bundle."""
        self.ahead = len(self._runs)
        try:
            self.pool.open()
            for number, run in enumerate(self._runs):
                self._start(number, run)
            while self.running:
                for started, event in self.ended():
                    if event.what == "done":
                        self.made += 1
                        self._compare(started.place, self.store.find(started.key))
                    else:
                        self.failed += 1
                        self._fail(started.place, event.message)
        finally:
            self.pool.close()
        return [self._compared[number] for number in range(len(self._runs))]

    def _start(self, number: int, run: Run) -> None:
        """Submit a run, or use its result if ``keep`` has it from an interrupted rerun."""
        self.ahead -= 1
        try:
            wanted = self._plan(run)
        except (core.scenario_error(), InputError, OSError, UnicodeDecodeError) as error:
            self.failed += 1
            self._fail(number, in_one_line(error))
            return
        started = Started(number, wanted, run.seed)
        found = self.store.find(started.key, tables=self._unpacked.manifest.kind == "result")
        if found is not None:
            self.reused += 1
            self._compare(number, found)
        else:
            self.submit(started)

    def _plan(self, run: Run) -> Plan:
        """Return the plan of a run; raise ``InputError`` if it reads files of this machine."""
        path = self._unpacked.get(run.scenario)
        if path.stat().st_size > _LARGEST_SCENARIO:
            raise InputError(f"{run.scenario} is larger than 64 MiB")
        source = Source(path.read_text(encoding="utf-8"), path.parent, run.name)
        for name, sha256 in _read_by(source):
            if sha256 not in self._unpacked.allowed(run):
                raise InputError(f"the scenario reads {clean(name)}, which is not in the bundle")
        return plan(source)

    def _fail(self, number: int, message: str) -> None:
        run = self._runs[number]
        message = "; ".join(filter(None, [message, _other_version(run)]))
        self._note(number, Compared(run, FAILED, message=message))

    def _compare(self, number: int, result: Result | None) -> None:
        run = self._runs[number]
        if result is None:
            self._fail(number, "its result has disappeared")
            return
        now = result.summary
        digest = str(now.get("digest", ""))
        fields, remarks = self._fields(run, now)
        is_other = run.version != core.version() or run.format != formats.RESULT_FORMAT
        tables = self._tables(run, result) if digest != run.digest or not is_other else []
        # One version makes one summary of a run; another version may have other numbers.
        is_changed = not is_other and bool(fields or tables or remarks)
        is_changed |= _OTHER_DIGEST in remarks
        if digest != run.digest:
            remarks.insert(0, _other_version(run) or self._other_build())
        elif is_other and fields:
            remarks.insert(
                0, "equal digest, but other numbers, which versions can compute differently"
            )
        else:
            if fields:
                remarks.insert(0, "equal digest, but the summary in the bundle has other numbers")
            if tables:
                remarks.insert(0, "equal digest, but the bundle has other tables")
        state = DIFFERS if digest != run.digest or is_changed else EQUAL
        message = "; ".join(filter(None, remarks))
        self._note(number, Compared(run, state, digest, message, tuple(fields), tuple(tables)))

    def _fields(self, run: Run, now: Mapping[str, object]) -> tuple[list[compare.Field], list[str]]:
        """Return (numbers of the summary that differ, remarks on the comparison)."""
        try:
            was = json.loads(self._unpacked.text(run.summary, _LARGEST_SUMMARY))
            if not isinstance(was, dict):
                raise InputError("it is not a JSON object")
            fields, alone = compare.summaries(was, now)
        except (InputError, ValueError, RecursionError, OverflowError) as error:
            return [], [f"the summary in the bundle cannot be compared: {clean(str(error), 200)}"]
        remark = f"{plural(alone, 'number is', 'numbers are')} in only one of the two summaries"
        remarks = [_OTHER_DIGEST] if was.get("digest", run.digest) != run.digest else []
        return fields, [*remarks, remark] if alone else remarks

    def _tables(self, run: Run, result: Result) -> list[compare.Table]:
        """Return the tables that differ, where the bundle has tables."""
        folder = run.scenario.rpartition("/")[0]
        if self._unpacked.manifest.kind != "result" or run.format > formats.RESULT_FORMAT:
            return []
        for file in self._unpacked.manifest.files:
            is_table = file.path.startswith(f"{folder}/") and file.path.endswith(".parquet")
            if is_table and file.inside:
                self._unpacked.get(file.path)
        return compare.tables(self._unpacked.folder / folder, run.format, result.path)

    def _other_build(self) -> str:
        """Return a sentence about another build of this version; empty if the builds are equal."""
        if self._unpacked.manifest.build == core.build():
            return ""
        return (
            "the bundle was made with another build of this version of Eastwest: builds differ "
            "between systems, and between states of the source"
        )

    def _note(self, number: int, compared: Compared) -> None:
        self._compared[number] = compared
        self._tell(compared)


def _other_version(run: Run) -> str:
    """Return a sentence about another version of Eastwest; empty if the versions are equal."""
    if run.version == core.version():
        return ""
    version = run.version
    if not version:
        return "the version of Eastwest that made the run is unknown"
    return (
        f"the run is of Eastwest {version}, this is {core.version()}: only equal versions "
        "promise equal digests, and the changelog lists what has changed; python -m pip install "
        f"eastwest=={version} installs the version of the run"
    )


def _read_by(source: Source) -> Iterator[tuple[str, str]]:
    """Yield (name, SHA-256) of each file that a scenario reads."""
    resolved = core.resolve(source.text, str(source.base_dir), str(shipped.DATA), [], None)
    for name, content in resolved["attached"]:
        yield name, hashlib.sha256(content).hexdigest()
