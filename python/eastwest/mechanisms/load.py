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
    """Description of loaded mechanisms, from which another process can load the same mechanisms."""

    library: Path | None = None
    library_sha256: str = ""
    files: tuple[Path, ...] = ()
    #: Names of mechanisms that were given as classes, which other processes cannot load.
    classes: tuple[str, ...] = ()

    def restore(self) -> core.Extras:
        """Load the mechanisms of this recipe without compiling anything, and return them."""
        imports.forget()
        found = _Loaded()
        if self.library is not None:
            module = crate.load(self.library)
            found.add_crate(module, self.library_sha256)
        for path in self.files:
            found.add_file(path)
        return found.extras()


@dataclass
class _Loaded:
    module: Any = None
    sketches: list[sketch.Sketch] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    #: Crate or class of each mechanism that is loaded, by kind and name.
    owners: dict[tuple[str, str], str] = field(default_factory=dict)

    def add_crate(self, module: Any, sha256: str) -> None:
        self.module = module
        source = crate.describe(module, sha256)
        for mechanism in source["mechanisms"]:
            kind, name = mechanism.split(" ", 1)
            self._claim(kind, name, f"crate {source['crate']}")
        self.sources.append(source)

    def add_file(self, path: Path) -> None:
        source = user_code.read(path)
        imports.renew(path, source)
        before = [*sys.modules]
        module = user_code.execute(path, source, "eastwest_sketch")
        own = [
            thing
            for thing in vars(module).values()
            if sketch.is_sketch(thing) and thing.__module__ == module.__name__
        ]
        if not own:
            raise InputError(f"{path} has no class derived from {sketch.BASES}")
        hashes = imports.hashes(path, source, before)
        self._add(path.name, source, own, f"{path}, ", hashes)

    def add_class(self, class_: type) -> None:
        try:
            source = inspect.getsource(class_).encode()
        except (OSError, TypeError):
            source = repr(class_).encode()  # source code is unknown in an interactive session
        self._add(class_.__name__, source, [class_], "")

    def _add(
        self,
        label: str,
        source: bytes,
        classes: list[type],
        place: str,
        imported: Sequence[dict[str, str]] = (),
    ) -> None:
        """Add the classes of a source; ``place`` begins error messages about their names."""
        described = [sketch.describe(class_) for class_ in classes]
        for one in described:
            owner = f"{place}class {one.class_.__name__}"
            problem = core.mechanism_name_problem(one.kind, one.name)
            if problem is not None:
                raise InputError(f"{owner}: {one.kind} {one.name!r:.80}: {problem}")
            self._claim(one.kind, one.name, owner)
        self.sketches += described
        names = [f"{one.kind} {one.name}" for one in described]
        sha256 = hashlib.sha256(source).hexdigest()
        about: dict[str, Any] = {"file": label, "sha256": sha256, "mechanisms": names}
        self.sources.append(about | ({"imports": [*imported]} if imported else {}))

    def _claim(self, kind: str, name: str, owner: str) -> None:
        """Record the owner of a mechanism; raise ``InputError`` if its name is already in use."""
        if other := self.owners.get((kind, name)):
            raise InputError(
                f"{owner}: {kind} {name!r}: {other} has this name, too; names must be unique"
            )
        self.owners[kind, name] = owner

    def extras(self) -> core.Extras:
        return core.Extras(self.module, tuple(self.sketches), tuple(self.sources))


def _check(given: object) -> None:
    """Raise ``InputError`` unless ``given`` is a list of folders, files and classes."""
    if isinstance(given, (str, Path, type)):
        shown = given.__name__ if isinstance(given, type) else repr(str(given))
        raise InputError(f"mechanisms must be a list: write [{shown}]")
    if not isinstance(given, Sequence):
        raise InputError(f"mechanisms must be a list, not {given!r:.60}")
    for one in given:
        if not isinstance(one, (str, Path, type)):
            raise InputError(
                f"{one!r:.60} in mechanisms must be the folder of a crate, a Python file, or a "
                f"class derived from {sketch.BASES}"
            )


def _check_file(path: Path) -> None:
    """Raise ``InputError`` if a Python file does not exist; the message has a similar file name."""
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
    """Return (loaded mechanisms, recipe to load them in other processes).

    ``given`` has folders of crates, Python files and classes; if it is empty, mechanisms that are
    in use stay in use. A crate is compiled if it has changed: for development, or with full
    optimisation if ``release`` or ``$EASTWEST_WITH_RELEASE`` is set. A crate for development has no
    checkpoints and cannot be used with ``eastwest fuzz``, unless ``complete`` is set. With
    ``show``, cargo writes its progress to standard error. Raises ``InputError`` if a mechanism
    cannot be used.
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
            found.add_crate(crate.load(library), sha256)
            recipe |= {"library": library, "library_sha256": sha256}
        else:
            raise InputError(
                f"{path} is neither a mechanism crate (a folder that `eastwest new` has made) nor "
                f"a Python file with a class derived from {sketch.BASES}"
            )
    return found.extras(), Recipe(**recipe)
