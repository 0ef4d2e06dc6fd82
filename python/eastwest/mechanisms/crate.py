"""Mechanism crates: the user's Rust crates, which are compiled with cargo and loaded.

A mechanism crate is compiled to an extension module that contains the whole simulator and the
mechanisms of the crate, so that calls between them are as fast as within Eastwest. The extension
module replaces ``eastwest._core``. Therefore only one crate, with any number of mechanisms, can be
loaded at a time.

By default cargo's profile ``dev`` is used, for which ``eastwest new`` chooses little optimisation:
the first build is shorter, and later builds take seconds. This profile also leaves out functions
that a run does not need: checkpoints, ``eastwest fuzz`` and ``eastwest drill`` (feature ``run`` of
crates/bindings; the feature ``complete`` has all). The profile ``release`` optimises across crates.
Compiled code is stored in the user's cache (source.py), which all crates share.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from eastwest import core
from eastwest.errors import InputError, MechanismError
from eastwest.mechanisms import source as sources

#: Environment variables for PyO3: the module is for any Python from 3.11 on (abi3), and is not
#: linked with a library of Python. The template of ``.cargo/config.toml`` has the same values, so
#: that ``cargo test`` does not compile all crates again.
_PYO3 = {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_NO_PYTHON": "1"}
_BINDINGS = "eastwest-bindings"
#: Environment variable that selects the profile ``release``, as ``--with-release`` does.
RELEASE = "EASTWEST_WITH_RELEASE"


def is_crate(folder: Path) -> bool:
    """Whether a folder is a mechanism crate: its ``Cargo.toml`` names ``eastwest-bindings``."""
    try:
        return _BINDINGS in (folder / "Cargo.toml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def source_hash(folder: Path) -> str:
    """Return the SHA-256 over the manifest and the source of a crate."""
    files = [folder / "Cargo.toml", *sorted((folder / "src").rglob("*.rs"))]
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(folder).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def source_of(folder: Path) -> Path | None:
    """Return the folder of Eastwest's source that the ``Cargo.toml`` of a crate names, or None.

    Raises ``InputError`` if the folder is not the source of the installed version; the message has
    the correct path.
    """
    try:
        manifest = tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None  # cargo reports the error of the manifest
    path = _path_of(manifest.get("dependencies"))
    if path is None:
        return None
    named = (folder / path).resolve().parents[1]
    found = sources.version(named)
    if found == core.version():
        return named
    state = "is absent" if found is None else f"is that of Eastwest {found}"
    installed = sources.folder()
    if installed is None:
        what = f"the installed Eastwest has version {core.version()} and no Rust source"
    else:
        right = sources.bindings(installed.resolve()).as_posix()
        what = f'for the installed Eastwest {core.version()} write path = "{right}"'
    raise InputError(f"{folder / 'Cargo.toml'}: the source {path!r:.200} {state}; {what}")


def _path_of(dependencies: object) -> str | None:
    """Return the path of ``eastwest-bindings`` in a ``[dependencies]`` table of Cargo, or None."""
    if not isinstance(dependencies, dict):
        return None
    for name, one in dependencies.items():
        if isinstance(one, dict) and one.get("package", name) == _BINDINGS:
            path = one.get("path")
            return path if isinstance(path, str) else None
    return None


def release_wanted() -> bool:
    """Whether crates are compiled with full optimisation: ``$EASTWEST_WITH_RELEASE`` is set.

    The values 0 and empty have no effect.
    """
    return os.environ.get(RELEASE, "") not in {"", "0"}


@dataclass(frozen=True)
class Cargo:
    """Builder of one crate with cargo: its folder, the folder of compiled code, and the profile."""

    folder: Path
    target: Path
    release: bool
    #: Whether the library has all functions of Eastwest, with checkpoints and ``eastwest fuzz``.
    complete: bool
    #: Whether cargo writes its progress to standard error.
    show: bool

    @property
    def _stamp(self) -> Path:
        """Path of an empty file that exists after a build with this profile and these features."""
        profile = "release" if self.release else "dev"
        return self.target / f"eastwest-built-{profile}{'-complete' if self.complete else ''}"

    def _features(self, what: str) -> list[str]:
        """Return the options that select features, for a cargo command such as ``build``."""
        try:
            manifest = tomllib.loads((self.folder / "Cargo.toml").read_text(encoding="utf-8"))
            known = {"run", "complete"} <= set(manifest.get("features", ()))
        except ValueError:
            return []  # cargo reports the error of the manifest
        if not known or what == "clean":
            return []
        if what == "check":
            # The check needs the interface for mechanisms only, not the simulator.
            return ["--no-default-features"]
        return ["--features", "complete"] if self.complete else []

    def library(self) -> Path:
        """Compile the crate, and return the path of its library.

        Before the first build, ``cargo check`` is run. The check needs only the interface for
        mechanisms and not the simulator, so that errors of the crate are reported sooner. Raises
        ``MechanismError`` if the crate does not compile, or is no dynamic library.
        """
        with self._alone():
            if not self._stamp.exists():
                self._run("check")
            messages = self._run("build")
            self._stamp.touch()
        library = _library(messages, self.folder)
        if library is None:
            raise MechanismError(
                f"{self.folder} is not a dynamic library: its Cargo.toml needs "
                'crate-type = ["cdylib"]'
            )
        return library

    def forget(self) -> None:
        """Remove the compiled library that another crate with the name of this crate has made."""
        name = tomllib.loads((self.folder / "Cargo.toml").read_text(encoding="utf-8"))
        with self._alone():
            self._run("clean", "--package", name["package"]["name"])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Context that locks the folder of compiled code against other processes of Eastwest."""
        self.target.mkdir(parents=True, exist_ok=True)
        with (self.target / "eastwest-lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _run(self, what: str, *more: str) -> bytes:
        """Run the command ``what`` of cargo, and return its standard output: messages in JSON.

        ``more`` are further options. Raises ``InputError`` if cargo is not installed, and
        ``MechanismError`` if the command fails.
        """
        cargo = shutil.which("cargo")
        if cargo is None:
            raise InputError(
                f"{self.folder} is a mechanism in Rust: compiling it needs cargo "
                "(https://rustup.rs)"
            )
        command = [cargo, what, *more, *self._features(what), "--target-dir", str(self.target)]
        if what != "clean":
            command.append("--message-format=json-render-diagnostics")
        if self.release:
            command.append("--release")
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **_PYO3},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if self.show else subprocess.PIPE,
            check=False,
        )
        if ran.returncode != 0:
            said = (ran.stderr or b"").decode(errors="replace").strip()
            shown = " ".join([what, *more, *(["--release"] if self.release else [])])
            raise MechanismError(f"{self.folder} does not compile (cargo {shown})", said)
        return ran.stdout


def build(
    folder: Path, *, release: bool = False, complete: bool = False, show: bool = False
) -> Path:
    """Compile a mechanism crate if it has changed, and return the path of its library.

    ``release`` optimises across crates and compiles all functions of Eastwest. ``complete``
    compiles all functions also in a build without ``release``. With ``show``, cargo writes its
    progress to standard error. Raises ``MechanismError`` with the compiler's messages where the
    crate does not compile.
    """
    folder = folder.resolve()
    cargo = Cargo(folder, _target(folder), release, complete or release, show)
    library = cargo.library()
    if Path(_own(load(library))["folder"]) == folder:
        return library
    # Crates of equal name share the file name of the library, and cargo reuses the wrong file.
    cargo.forget()
    return cargo.library()


def _target(folder: Path) -> Path:
    """Return the folder for a crate's compiled code: ``$CARGO_TARGET_DIR``, or in the cache."""
    source = source_of(folder)
    named = os.environ.get("CARGO_TARGET_DIR")
    if named:
        return Path(named).absolute()
    return sources.compiled(source if source is not None else folder)


def _own(module: Any) -> core.OwnCrate:
    """Return the description of a mechanism crate from its extension module.

    Raises ``MechanismError`` if the module has no mechanisms.
    """
    own: core.OwnCrate | None = module.own_crate()
    if own is None:
        raise MechanismError(f"{module.__file__} is not a mechanism crate: it has no mechanisms")
    return own


def _library(messages: bytes, folder: Path) -> Path | None:
    """Return the path of the library of the crate in ``folder``; None if none was built.

    ``messages`` is the output of ``cargo build``: one JSON object for each line.
    """
    manifest = (folder / "Cargo.toml").resolve()
    for line in messages.splitlines():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if (
            message.get("reason") != "compiler-artifact"
            or Path(message["manifest_path"]).resolve() != manifest
        ):
            continue
        for name in message["filenames"]:
            if Path(name).suffix in {".so", ".dylib", ".dll"}:
                return Path(name)
    return None


def load(library: Path) -> ModuleType:
    """Return the extension module of a compiled mechanism crate.

    Raises ``MechanismError`` if the library cannot be loaded, or is of another version of Eastwest.
    """
    name = f"eastwest.crate_{hashlib.sha256(library.read_bytes()).hexdigest()[:16]}.mechanisms"
    if name in sys.modules:
        return sys.modules[name]
    loader = ExtensionFileLoader(name, str(library))
    spec = importlib.util.spec_from_file_location(name, library, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except (ImportError, ValueError) as error:
        raise MechanismError(f"{library}: {error}") from None
    if module.version() != core.version():
        raise MechanismError(
            f"{library} was built with Eastwest {module.version()}, but {core.version()} is "
            "installed: the Cargo.toml of the crate must name the source of the installed package"
        )
    sys.modules[name] = module
    return module


def describe(module: Any, sha256: str) -> dict[str, Any]:
    """Return the entry of a mechanism crate in a run's summary; ``sha256`` is the source's hash."""
    own = _own(module)
    return {
        "crate": own["name"],
        "version": own["version"],
        "profile": own["profile"],
        "sha256": sha256,
        "mechanisms": [f"{kind} {one}" for kind, one in own["mechanisms"]],
    }
