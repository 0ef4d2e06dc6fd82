"""Source files that a user's Python file imports: they decide results, as the file itself does.

The user's files are all files below the folder of the Python file and below the working directory,
except installed packages, the standard library and Eastwest.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

#: Files of the modules that files of mechanisms may import in this process, by name of the module.
_imported: dict[str, Path] = {}
#: Time in s: a compiled file that was written less than this time after the last change of its
#: source may be the compiled form of an earlier content of the source.
_DOUBTFUL_S = 2.0
_INSTALLED = {"site-packages", "dist-packages"}
_PACKAGE = Path(__file__).resolve().parents[1]


def forget() -> None:
    """Remove from ``sys.modules`` the modules that earlier mechanism files may have imported.

    Mechanism files that are loaded next import these modules again, with the code on disk. Modules
    that methods of mechanisms have imported during runs are removed, too.
    """
    _remove(_imported)
    _imported.clear()


def renew(path: Path, source: bytes) -> None:
    """Remove from ``sys.modules`` the user's modules that a Python file may import.

    To be called before the file ``path`` with the content ``source`` is executed: the file then
    imports the code on disk, even if other code of the process has imported a module before.
    Modules of mechanism files that were loaded since the last call of ``forget`` are not removed.
    """
    importlib.invalidate_caches()
    found = _reachable(path, source, [])
    for file in found.values():
        _remove_doubtful_bytecode(file)
    _remove({name: file for name, file in found.items() if name not in _imported})


def _remove_doubtful_bytecode(file: Path) -> None:
    """Remove the compiled form of a source file if it may belong to an earlier content.

    Python recognises a changed source by its time in whole seconds and its size (PEP 3147): a file
    that changes twice in a second, with equal sizes, keeps the compiled form of the first content.
    """
    compiled = Path(importlib.util.cache_from_source(str(file)))
    with contextlib.suppress(OSError):
        if compiled.stat().st_mtime - file.stat().st_mtime < _DOUBTFUL_S:
            compiled.unlink()


def _remove(modules: Mapping[str, Path]) -> None:
    for name, file in modules.items():
        if name in sys.modules and _file(name) == file:
            del sys.modules[name]


def hashes(path: Path, source: bytes, before: Iterable[str]) -> list[dict[str, str]]:
    """Return name and SHA-256 of each source file that a Python file imports, in order of names.

    The file ``path`` with the content ``source`` was executed when ``sys.modules`` had the names
    ``before``. The result includes files that imported files import, and imports in functions that
    were not called.
    """
    known = {*before}
    found = _reachable(path, source, [name for name in sys.modules if name not in known])
    _imported.update(found)
    roots = _roots(path)
    named = {
        _shown(file, roots): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in found.values()
    }
    return [{"file": name, "sha256": sha256} for name, sha256 in sorted(named.items())]


def _reachable(path: Path, source: bytes, names: Iterable[str]) -> dict[str, Path]:
    """Return the files of the user's modules that a file may import, by name of the module.

    ``names`` are names of further modules, which the result includes if they are the user's. The
    function imports no module.
    """
    roots = _roots(path)
    found: dict[str, Path] = {}
    waiting = [*names, *_names(source, "")]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        file = _file(name)
        if file is None or file.resolve() == path.resolve() or not _is_users(file, roots):
            continue
        found[name] = file
        package = name if file.stem == "__init__" else name.rpartition(".")[0]
        waiting += _names(file.read_bytes(), package)
    return found


def _roots(path: Path) -> list[Path]:
    """Return the folder of a Python file and the working directory.

    The list has the paths as they are, and also without symbolic links.
    """
    folders = [path.absolute().parent, Path.cwd()]
    return [*folders, *(folder.resolve() for folder in folders), path.resolve().parent]


def _file(name: str) -> Path | None:
    """Return the source file of a module; None if the file is not found or does not exist.

    If the module is not imported yet, the search does not execute its package.
    """
    module = sys.modules.get(name)
    try:
        if module is not None:
            origin = getattr(module, "__file__", None)
        else:
            spec = _spec(name)
            origin = spec.origin if spec is not None and spec.has_location else None
    except (ImportError, AttributeError, ValueError, TypeError, OSError):
        return None
    path = Path(origin).absolute() if isinstance(origin, str) else None
    return path if path is not None and path.is_file() else None


def _spec(name: str) -> ModuleSpec | None:
    """Return where a module lies in the folders of ``sys.path``; None if it is in none of them."""
    package = name.rpartition(".")[0]
    if not package:
        return PathFinder.find_spec(name)
    above = _spec(package)
    folders = above.submodule_search_locations if above is not None else None
    return PathFinder.find_spec(name, [*folders]) if folders is not None else None


def _names(source: bytes, package: str) -> Iterator[str]:
    """Yield the names of modules that a source file may import; ``package`` is its package."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")[: len(package.split(".")) + 1 - node.level]
                base = ".".join([*parts, *([base] if base else [])])
            wanted = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in wanted:
            parts = name.split(".")
            yield from (".".join(parts[:n]) for n in range(1, len(parts) + 1))


def _is_users(file: Path, roots: list[Path]) -> bool:
    """Whether a file is the user's: below one of ``roots``, and not a part of an installation.

    For a symbolic link, both paths are tested: the path of the link and the path of its target.
    """
    library = Path(sysconfig.get_paths()["stdlib"]).resolve()
    paths = (file, file.resolve())
    return any(path.is_relative_to(root) for path in paths for root in roots) and not any(
        _INSTALLED & {*path.parts} or path.is_relative_to(_PACKAGE) or path.is_relative_to(library)
        for path in paths
    )


def _shown(file: Path, roots: list[Path]) -> str:
    """Return the path of a file relative to the first of ``roots`` that contains it."""
    return next(
        path.relative_to(root).as_posix()
        for path in (file, file.resolve())
        for root in roots
        if path.is_relative_to(root)
    )
