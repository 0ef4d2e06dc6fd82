"""Mechanism crates: compiled with cargo where they have changed, and loaded.

A mechanism crate becomes an extension module with the whole simulator and its own mechanisms, so
that calls between them cost no more than within Eastwest. It replaces ``eastwest._core``. So one
crate can be loaded at a time, with any number of mechanisms.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from eastwest import core
from eastwest.errors import InputError, MechanismError

#: Arguments with which cargo compiles as maturin does: otherwise each of the two would compile PyO3
#: again after the other.
_BITS = 64 if sys.maxsize > 2**32 else 32
_LIKE_MATURIN = {
    "PYO3_BUILD_EXTENSION_MODULE": "1",
    "PYO3_PYTHON": sys.executable,
    "PYO3_ENVIRONMENT_SIGNATURE": (
        f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}-{_BITS}bit"
    ),
}
_BINDINGS = "eastwest-bindings"


def source_folder() -> Path | None:
    """Return the Rust source from which this Eastwest was built, or None where it is absent."""
    named = os.environ.get("EASTWEST_SOURCE")
    folder = Path(named) if named else Path(__file__).resolve().parents[3]
    return folder if (folder / "crates" / "bindings" / "Cargo.toml").is_file() else None


def is_crate(folder: Path) -> bool:
    """Whether a folder is a mechanism crate."""
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


def build(folder: Path, *, show: bool = False) -> Path:
    """Compile a mechanism crate, unless it is compiled already, and return its library.

    ``show`` lets cargo write its progress to standard error. Raises ``MechanismError`` with the
    compiler's messages where the crate does not compile.
    """
    cargo = shutil.which("cargo")
    if cargo is None:
        raise InputError(
            f"{folder} is a mechanism in Rust: compiling it needs cargo (https://rustup.rs)"
        )
    command = [cargo, "build", "--release", "--message-format=json-render-diagnostics"]
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **_LIKE_MATURIN},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if show else subprocess.PIPE,
        check=False,
    )
    if ran.returncode != 0:
        said = (ran.stderr or b"").decode(errors="replace").strip()
        raise MechanismError(f"{folder} does not compile (cargo build --release)", said)
    library = _library(ran.stdout, folder)
    if library is None:
        raise MechanismError(f'{folder} is no cdylib: its Cargo.toml needs crate-type = ["cdylib"]')
    return library


def _library(messages: bytes, folder: Path) -> Path | None:
    """Return the path of the library in cargo's messages, or None."""
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
    """Load a compiled mechanism crate. Raises ``MechanismError`` where it is not one."""
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
            f"{library} was built with Eastwest {module.version()}, this is {core.version()}: "
            "its Cargo.toml names another source than that of the installed package"
        )
    sys.modules[name] = module
    return module


def describe(module: Any, sha256: str) -> dict[str, Any]:
    """Return the entry of a crate in the summary of a run."""
    name, version, mechanisms = module.own_crate()
    names = [f"{kind} {one}" for kind, one in mechanisms]
    return {"crate": name, "version": version, "sha256": sha256, "mechanisms": names}
