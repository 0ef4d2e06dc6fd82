"""Execution of Python files of users and studies: mechanisms in Python, measures of claims."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from eastwest.errors import InputError, MechanismError

_LARGEST_FILE = 4_000_000


def read(path: Path) -> bytes:
    """Return the content of a Python file. Raises ``InputError`` above 4 MB."""
    with path.open("rb") as file:
        source = file.read(_LARGEST_FILE + 1)
    if len(source) > _LARGEST_FILE:
        raise InputError(f"{path} is too large for a Python file; at most 4 MB are allowed")
    return source


def module_name(path: Path, source: bytes, kind: str) -> str:
    """Return the module name of a Python file: ``kind``, and a hash of its path and content."""
    sha256 = hashlib.sha256(str(path.resolve()).encode() + source).hexdigest()
    return f"{kind}_{sha256[:16]}"


def execute(path: Path, source: bytes, kind: str) -> ModuleType:
    """Execute a Python file as a new module and return the module.

    ``source`` is the content of the file; ``kind`` begins the module's name. Raises
    ``MechanismError`` with the traceback where the file fails or ends the process, and
    ``InputError`` where the file's name does not end with ``.py``.
    """
    name = module_name(path, source, kind)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise InputError(f"{path} cannot be read as Python: its name must end with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up the module of their class in sys.modules
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise MechanismError(
            f"{path} could not be loaded: {type(error).__name__}: {error}",
            "".join(traceback.format_exception(error)),
        ) from None
    return module
