"""Loading of the user's mechanisms that a command or call names: crates, Python files, classes."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest import core, user_code
from eastwest.errors import InputError, did_you_mean
from eastwest.mechanisms import crate, imports, sketch

#: A user's mechanism: folder of a Rust crate, Python file with mechanism classes, or a class.
Mechanism = str | Path | type


@dataclass(frozen=True)
class Recipe:
    """Description of loaded mechanisms from which another process can load them, too."""

    library: Path | None = None
    library_sha256: str = ""
    files: tuple[Path, ...] = ()
    #: Names of mechanism classes that no file contains, so that other processes cannot load them.
    classes: tuple[str, ...] = ()

    def restore(self) -> core.Extras:
        """Load the mechanisms of this recipe without compiling anything, and return them."""
        imports.forget()
        found = _Loaded()
        if self.library is not None:
            module = crate.load(self.library)
            found.module = module
            found.sources.append(crate.describe(module, self.library_sha256))
        for path in self.files:
            found.add_file(path)
        return found.extras()


@dataclass
class _Loaded:
    module: Any = None
    sketches: list[sketch.Sketch] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)

    def add_file(self, path: Path) -> None:
        source = user_code.read(path)
        before = [*sys.modules]
        module = user_code.execute(path, source, "eastwest_sketch")
        own = [
            thing
            for thing in vars(module).values()
            if sketch.is_sketch(thing) and thing.__module__ == module.__name__
        ]
        if not own:
            raise InputError(f"{path} has no class derived from {sketch.BASES}")
        self._add(path.name, source, own, imports.hashes(path, source, before))

    def add_class(self, class_: type) -> None:
        try:
            source = inspect.getsource(class_).encode()
        except (OSError, TypeError):
            source = repr(class_).encode()  # source code is unknown in an interactive session
        self._add(class_.__name__, source, [class_])

    def _add(
        self,
        label: str,
        source: bytes,
        classes: list[type],
        imported: Sequence[dict[str, str]] = (),
    ) -> None:
        described = [sketch.describe(class_) for class_ in classes]
        for one in described:
            if any((one.kind, one.name) == (other.kind, other.name) for other in self.sketches):
                raise InputError(
                    f"{label}: there are two mechanisms {one.name} of kind {one.kind}: give one of "
                    "them another name"
                )
        self.sketches += described
        names = [f"{one.kind} {one.name}" for one in described]
        sha256 = hashlib.sha256(source).hexdigest()
        about: dict[str, Any] = {"file": label, "sha256": sha256, "mechanisms": names}
        self.sources.append(about | ({"imports": [*imported]} if imported else {}))

    def extras(self) -> core.Extras:
        return core.Extras(self.module, tuple(self.sketches), tuple(self.sources))


def _check(given: object) -> None:
    """Raise ``InputError`` where mechanisms are no list of folders, files and classes."""
    if isinstance(given, (str, Path, type)):
        shown = given.__name__ if isinstance(given, type) else repr(str(given))
        raise InputError(f"mechanisms must be a list: write [{shown}]")
    if not isinstance(given, Sequence):
        raise InputError(f"mechanisms must be a list, not {given!r:.60}")
    for one in given:
        if not isinstance(one, (str, Path, type)):
            raise InputError(
                f"{one!r:.60} in mechanisms is no folder of a crate, Python file or class derived "
                f"from {sketch.BASES}"
            )


def _check_file(path: Path) -> None:
    """Raise ``InputError`` where a Python file does not exist, with the nearest name beside it."""
    if path.is_file():
        return
    if path.exists():
        raise InputError(f"{path} is not a file")
    beside = [each.name for each in path.parent.glob("*.py")] if path.parent.is_dir() else []
    raise InputError(f"there is no file {path}{did_you_mean(path.name, beside)}")


def load(
    given: Sequence[Mechanism],
    *,
    show: bool = False,
    release: bool = False,
    complete: bool = False,
) -> tuple[core.Extras, Recipe]:
    """Load mechanisms: folders of crates, Python files and classes.

    A crate is compiled if it has changed: for development, or with full optimisation if
    ``release`` or ``$EASTWEST_WITH_RELEASE`` is set. A crate for development has no checkpoints and
    cannot be used with ``eastwest fuzz``, unless ``complete``. With ``show``, cargo writes its
    progress to standard error.
    Raises ``InputError`` where a mechanism cannot be used.
    """
    if not given:
        return core.extras(), Recipe()  # mechanisms that were loaded before stay in use
    _check(given)
    imports.forget()
    found = _Loaded()
    recipe: dict[str, Any] = {"files": (), "classes": ()}
    for one in given:
        if isinstance(one, type):
            found.add_class(one)
            recipe["classes"] += (one.__name__,)
            continue
        path = Path(one)
        if path.suffix == ".py":
            _check_file(path)
            found.add_file(path)
            recipe["files"] += (path.resolve(),)
        elif crate.is_crate(path):
            if found.module is not None:
                raise InputError(
                    f"{path}: only one crate can be loaded at a time; put all mechanisms into one"
                )
            sha256 = crate.source_hash(path)
            wanted = release or crate.release_wanted()
            library = crate.build(path, release=wanted, complete=complete, show=show)
            found.module = crate.load(library)
            found.sources.append(crate.describe(found.module, sha256))
            recipe |= {"library": library, "library_sha256": sha256}
        else:
            raise InputError(
                f"{path} is neither a mechanism crate (a folder that `eastwest new` has made) nor "
                f"a Python file with a class derived from {sketch.BASES}"
            )
    return found.extras(), Recipe(**recipe)
