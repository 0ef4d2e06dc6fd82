"""Making of a bundle from a result, a sweep or a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from eastwest.bundle import archive, of_result, of_study, of_sweep, readme
from eastwest.bundle.contents import LARGEST_INPUT, Contents
from eastwest.bundle.environment import CARGO_LOCK
from eastwest.bundle.form import name_problem
from eastwest.bundle.made import Bundle
from eastwest.claims.catalogue import papers_folder
from eastwest.claims.verdict import Outcome
from eastwest.claims.work import How, Progress
from eastwest.errors import InputError, did_you_mean
from eastwest.files import check_outputs, is_folder
from eastwest.mechanisms.load import load
from eastwest.results import Result, folder_stem
from eastwest.sweep.tables import SweepResult
from eastwest.sweep.tables import read_summary as read_sweep
from eastwest.units import clean

_ENDING = "-bundle.zip"


def bundle(
    source: str | Path,
    out: str | Path | None = None,
    *,
    force: bool = False,
    quick: bool = False,
    claims: Sequence[str] = (),
    jobs: int | None = None,
    store: str | Path | None = None,
    papers: str | Path | None = None,
    mechanisms: Sequence[str | Path] = (),
    largest_input: int = LARGEST_INPUT,
    origins: Mapping[str, str] | None = None,
    add: Sequence[str | Path] = (),
    pictures: bool = True,
    progress: Progress = lambda *_: None,
    done: Callable[[Outcome], None] = lambda _: None,
) -> Bundle:
    """Write one archive with everything that is needed to repeat results, and return it, opened.

    ``source`` is a result folder, the folder of a sweep, or a study: its folder, or its name in the
    folder ``papers``. ``out`` is the archive, by default ``NAME-bundle.zip`` in the working
    directory; an existing file is replaced only with ``force``.

    The claims of a study are run, with ``jobs`` processes (0: in this process); runs in the run
    store ``store`` are reused. ``quick`` bundles only their quick runs; else the bundle has full
    and quick runs. ``claims`` chooses claims of the study by their ids or the beginnings of ids;
    without it, all are included. The runs of a sweep come from its run store.

    ``mechanisms`` are the files and crates of the user's mechanisms that the runs need. Input files
    above ``largest_input`` bytes are described by size, SHA-256 and origin only; ``origins`` has
    texts about the origin and licence of input files, by the name of the file or of its folder.
    ``add`` are further files, which are put into the folder ``added``. ``pictures`` includes
    pictures and pages. ``progress`` and ``done`` are called with the progress and the outcome of
    each claim.

    Raises ``InputError`` where ``source`` cannot be bundled.
    """
    made = _kind(source, papers)
    kind, folder = made
    name = folder_stem(folder.resolve().name, 0).removesuffix("-0")
    target = Path(out) if out is not None else Path(f"{name}{_ENDING}")
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file to write")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no folder {target.parent}")
    check_outputs([target], [], force)
    contents = Contents(name, kind, largest_input, dict(origins or {}))
    for each in add:
        _add(contents, Path(each))
    given = [Path(one) for one in mechanisms]
    if kind == "result":
        of_result.collect(contents, Result(folder), given, pictures)
    elif kind == "sweep":
        chosen = None if store is None else Path(store)
        of_sweep.collect(contents, SweepResult(folder), given, pictures, chosen)
    else:
        recipe = load([str(one) for one in given])[1] if given else None
        how = [
            How(each, jobs, store=store, progress=progress, mechanisms=recipe)
            for each in ([True] if quick else [False, True])
        ]
        of_study.collect(contents, folder, claims, how, given, pictures, done)
    if not contents.runs:
        raise InputError(f"{folder} has no finished run: there is nothing to repeat")
    unused = contents.unused_origins()
    if unused:
        raise InputError(f"origin of {clean(unused[0])!r}: no input file has this name{unused[1]}")
    contents.add_lock()
    contents.facts["cargo"] = any(file.path == CARGO_LOCK for file in contents.files)
    manifest, files = contents.finished(readme.page(contents, target.name))
    known = {file.path: file.sha256 for file in manifest.files}
    archive.write(target, f"{name}-bundle", files, known)
    return Bundle(target, tuple(contents.remarks))


def _kind(source: str | Path, papers: str | Path | None) -> tuple[str, Path]:
    """Return (``result``, ``sweep`` or ``study``; folder) of what a user names."""
    folder = Path(source)
    if is_folder(folder):
        if read_sweep(folder) is not None:
            return "sweep", folder
        if (folder / "summary.json").is_file() and (folder / "scenario.toml").is_file():
            return "result", folder
        if any(folder.glob("claims/*.toml")):
            return "study", folder
        raise InputError(
            f"{folder} is neither the folder of a result or a sweep, nor a study, which has files "
            "claims/*.toml"
        )
    studies: dict[str, Path] = {}
    try:
        found = papers_folder(papers).glob("*/claims/*.toml")
        studies = {path.parent.parent.name: path.parent.parent for path in found}
    except InputError:
        if papers is not None:
            raise
    named = str(source)
    if named in studies:
        return "study", studies[named]
    hint = did_you_mean(named, studies)
    raise InputError(
        f"there is no folder {clean(named)}, and no study of this name{hint}: name the folder of a "
        "result or a sweep, or a study"
    )


def _add(contents: Contents, path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path} is not a file that can be added")
    name = f"added/{path.name}"
    if name_problem(name) is None and any(file.path == name for file in contents.files):
        raise InputError(f"two added files have the name {path.name}")
    contents.add(name, path.resolve(), "added")
