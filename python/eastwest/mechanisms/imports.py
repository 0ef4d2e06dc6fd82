"""Source files that a user's Python file imports: they decide results, as the file itself does.

Files count that are below the folder of the Python file or below the working directory, except
installed packages, the standard library and Eastwest.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

#: Modules that files of mechanisms have imported in this process, by name.
_imported: dict[str, ModuleType] = {}
_INSTALLED = {"site-packages", "dist-packages"}
_PACKAGE = Path(__file__).resolve().parents[1]


def forget() -> None:
    """Remove the modules of earlier mechanism files from ``sys.modules``.

    The next file imports them again, so that their code is that of the files on disk.
    """
    for name, module in _imported.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    _imported.clear()


def hashes(path: Path, source: bytes, before: Iterable[str]) -> list[dict[str, str]]:
    """Return name and SHA-256 of each source file that a Python file imports, in order of names.

    The file ``path`` with the content ``source`` was executed when ``sys.modules`` had the names
    ``before``. Imports of imported files count, too, also within functions that were not called.
    """
    roots = [path.resolve().parent, Path.cwd().resolve()]
    new = [name for name in sys.modules if name not in {*before}]
    found: dict[Path, str] = {}
    waiting = [*new, *_names(source, "")]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        file = _file(name)
        if file is None or file == path.resolve() or not _is_users(file, roots):
            continue
        if name in new:
            _imported[name] = sys.modules[name]
        if file not in found:
            content = file.read_bytes()
            found[file] = hashlib.sha256(content).hexdigest()
            waiting += _names(content, name if file.stem == "__init__" else name.rpartition(".")[0])
    named = {_shown(file, roots): sha256 for file, sha256 in found.items()}
    return [{"file": name, "sha256": sha256} for name, sha256 in sorted(named.items())]


def _file(name: str) -> Path | None:
    """Return the source file of a module; None if it has none, or cannot be found."""
    module = sys.modules.get(name)
    try:
        if module is not None:
            origin = getattr(module, "__file__", None)
        else:
            spec = importlib.util.find_spec(name)
            origin = spec.origin if spec is not None and spec.has_location else None
    except (ImportError, AttributeError, ValueError):
        return None
    path = Path(origin).resolve() if isinstance(origin, str) else None
    return path if path is not None and path.is_file() else None


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
    """Whether a file is the user's: below one of ``roots``, and not a part of an installation."""
    library = Path(sysconfig.get_paths()["stdlib"]).resolve()
    return (
        any(file.is_relative_to(root) for root in roots)
        and not _INSTALLED & {*file.parts}
        and not file.is_relative_to(_PACKAGE)
        and not file.is_relative_to(library)
    )


def _shown(file: Path, roots: list[Path]) -> str:
    """Return the path of a file relative to the first of ``roots`` that contains it."""
    root = next(each for each in roots if file.is_relative_to(each))
    return file.relative_to(root).as_posix()
