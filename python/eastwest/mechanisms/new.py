"""Writer of the first version of a user's mechanism: small, working code that the user changes.

The templates are in ``templates/``; tests build and run each of them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from eastwest import core
from eastwest.errors import FolderError, InputError
from eastwest.files import sync_folder
from eastwest.mechanisms import source as sources
from eastwest.partial import Partial

_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_LONGEST = 40
#: Names that have another meaning in Rust, cargo or Python.
_TAKEN = frozenset(
    re.findall(
        "[a-z_]+",
        """abstract alloc and as async await become box break build const continue core crate deps
        do dyn eastwest else enum examples extern false final fn for from if impl import in
        incremental is let loop macro match mod move mut not or override priv proc_macro pub ref
        return self static std struct super target test trait true try type typeof unsafe unsized
        use virtual where while with yield""",
    )
)


class Kind(StrEnum):
    """The kind of a mechanism."""

    queue = "queue"
    congestion = "congestion"
    routing = "routing"
    application = "application"


#: Lines of the scenario's ``[fabric]`` that name the mechanism and set an example parameter.
_FABRIC = {
    Kind.queue: '\n[fabric.queue]\nkind = "@NAME@"\nlimit = "200 packets"\nmin = 5\nmax = 15\n',
    Kind.routing: 'routing = "@NAME@"\n\n[fabric.routing_parameters]\nmargin = 5\n',
    Kind.congestion: "",
    Kind.application: "",
}
_TCP = {
    Kind.queue: "",
    Kind.routing: "",
    Kind.congestion: 'congestion = "@NAME@"\n\n[tcp.parameters]\nincrease = 2\nkeep = 0.7\n',
    Kind.application: "",
}
#: Title and workload of the scenario for a queue, congestion control or routing.
_SHUFFLE = (
    "Sixteen hosts in two racks send to each other all at once.",
    '[[workload]]\nkind = "all-to-all"\nname = "shuffle"\nbytes = "200 KB"\n',
)
_APPLICATION = (
    "A front end asks fifteen hosts in two racks.",
    '[[workload]]\nkind = "@NAME@"\nname = "search"\nfront_ends = ["h0"]\n'
    'workers = ["h1..h15"]\nqueries = 200\ndeadline = "5 ms"\n',
)
_SCHEMA_PATHS = {
    Kind.queue: "fabric.queue.kind",
    Kind.congestion: "tcp.congestion",
    Kind.routing: "fabric.routing",
    Kind.application: "workload.*.kind",
}
_WHAT = {
    Kind.queue: "a queue discipline that drops early on a linear ramp",
    Kind.congestion: "a congestion control with an increase and a decrease of its own",
    Kind.routing: "a choice among equal paths: the path of the flow, or the shortest queue",
    Kind.application: "an application: queries to many workers at once, answered at a deadline",
}


@dataclass(frozen=True)
class Written:
    """A mechanism that was written: folder, names of files, and description (``what``)."""

    folder: Path
    files: list[str]
    #: Value of ``--with`` in the folder of the mechanism: a Python file, or ``.`` for a crate.
    named: str
    what: str


def write(name: str, kind: Kind, *, python: bool = False, source: Path | None = None) -> Written:
    """Write a folder ``name`` with a new mechanism of this name, and return its description.

    ``python`` writes a mechanism in Python instead of a Rust crate. ``source`` is the folder of
    Eastwest's Rust source, needed if the installed package has none. On an error, no folder is
    written. Raises ``InputError`` for a name that cannot be used, or if the source is missing;
    ``FolderError`` if the folder exists.
    """
    _check_name(name, kind)
    folder = Path(name)
    if folder.exists() or folder.is_symlink():
        raise FolderError(f"{folder} already exists: name another folder")
    files = _python_files(name, kind) if python else _rust_files(name, kind, _source(source))
    try:
        with Partial.folder(Path()) as partial:
            for path, text in files.items():
                target = partial.path / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            sync_folder(partial.path)
            partial.path.rename(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(folder)) from error
    named = f"{_python_stem(name)}.py" if python else "."
    return Written(folder, sorted(files), named, _WHAT[kind])


def _check_name(name: str, kind: Kind) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise InputError(
            f"{name!r:.80} cannot be a name: allowed are at most {_LONGEST} characters: words of "
            "letters a to z and digits, joined by - or _, such as my-queue"
        )
    if name.replace("-", "_") in _TAKEN:
        raise InputError(f"{name!r} has another meaning in Rust, cargo or Python; try my-{name}")
    keys = json.loads(core.schema())["keys"]
    known = next(key["choices"] for key in keys if key["path"] == _SCHEMA_PATHS[kind])
    if name in {choice["name"] for choice in known}:
        raise InputError(f"{name!r} is the name of a built-in {kind.value}; try my-{name}")


def _source(named: Path | None) -> Path:
    """Return the folder of Eastwest's Rust source: ``named``, or the source of this package.

    Raises ``InputError`` if there is no source, or if it has another version than this package.
    """
    if named is not None:
        return sources.checked(named.resolve())
    folder = sources.folder()
    if folder is None:
        raise InputError(
            "this Eastwest was installed without its Rust source, which is needed to compile a "
            f"mechanism: get the source of version {core.version()} and name its folder with "
            "--source (or $EASTWEST_SOURCE). A mechanism in Python (--python) needs no source"
        )
    return sources.checked(folder.resolve())


def _template(path: str) -> str:
    return (_TEMPLATES / path).read_text(encoding="utf-8")


def _scenario(name: str, kind: Kind) -> str:
    title, workload = _APPLICATION if kind is Kind.application else _SHUFFLE
    text = _template("scenario.toml").replace("@FABRIC@\n", _FABRIC[kind] + "\n")
    text = text.replace("@TITLE@", title).replace("@WORKLOAD@", workload)
    return text.replace("@TCP@\n", _TCP[kind] + "\n").replace("@NAME@", name)


def _rust_files(name: str, kind: Kind, source: Path) -> dict[str, str]:
    files = {
        "Cargo.toml": _template("rust/Cargo.toml"),
        ".cargo/config.toml": _template("rust/config.toml"),
        ".gitignore": _template("gitignore"),
        "src/lib.rs": _template(f"rust/{kind.value}.rs"),
        "README.md": _template("rust/README.md"),
    }
    values = {
        "@NAME@": name,
        "@SOURCE@": source.as_posix(),
        "@TARGET@": sources.compiled(source).as_posix(),
        "@WHAT@": _WHAT[kind],
        **_guide(kind),
    }
    made = {path: _filled(text, values) for path, text in files.items()}
    # With equal versions of all dependencies, compiled dependencies are used again.
    lock = source / "Cargo.lock"
    if lock.is_file():
        made["Cargo.lock"] = lock.read_text(encoding="utf-8")
    return {**made, "scenario.toml": _scenario(name, kind)}


def _python_files(name: str, kind: Kind) -> dict[str, str]:
    stem = _python_stem(name)
    class_ = "".join(word.capitalize() for word in re.split("[-_]", name))
    values = {"@NAME@": name, "MyMechanism": class_, "@FILE@": f"{stem}.py", "@WHAT@": _WHAT[kind]}
    values |= _guide(kind)
    return {
        f"{stem}.py": _filled(_template(f"python/{kind.value}.py"), values),
        "README.md": _filled(_template("python/README.md"), values),
        ".gitignore": _template("gitignore"),
        "scenario.toml": _scenario(name, kind),
    }


def _guide(kind: Kind) -> dict[str, str]:
    """Return title and file name of the guide's page on a kind of mechanism, for templates."""
    what = "application" if kind is Kind.application else "mechanism"
    return {"@GUIDE@": f"Your own {what}", "@PAGE@": f"own-{what}.md"}


def _python_stem(name: str) -> str:
    return name.replace("-", "_")


def _filled(text: str, values: dict[str, str]) -> str:
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text
