"""Measures and values of one study: those of ``measures.py`` in its folder, beside the shared ones.

The file is Python and is executed when a claim of the study is read. Its functions are registered
as those of Eastwest are, with ``measure`` and ``run_value`` of ``eastwest.claims.measures``, and
are known to the claims of this study only.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from eastwest.claims.measures.base import REGISTERED, SHARED, Known
from eastwest.errors import InputError

#: Name of the file in the folder of a study.
FILE = "measures.py"


def known_in(study: Path) -> Known:
    """Return the measures and values that the claims of a study may name.

    Raises ``InputError`` where the study's file cannot be executed, or takes a shared name.
    """
    if not (study / FILE).is_file():
        return SHARED
    own = REGISTERED.get(module_of(study).__name__, Known())
    for what, names, shared in (
        ("measure", own.measures, SHARED.measures),
        ("value", own.values, SHARED.values),
    ):
        for name in names:
            if name in shared:
                raise InputError(f"{study / FILE}: {name} is the name of a shared {what}")
    return Known({**SHARED.measures, **own.measures}, {**SHARED.values, **own.values})


def module_of(study: Path) -> ModuleType:
    """Return the module of a study's measures, which is executed once in a process."""
    path = (study / FILE).resolve()
    return _executed(path, path.stat().st_mtime_ns)


@functools.cache
def _executed(path: Path, changed_ns: int) -> ModuleType:
    """Return a file of measures as a module; ``changed_ns`` tells its versions apart."""
    sha256 = hashlib.sha256(f"{path} {changed_ns}".encode()).hexdigest()
    name = f"measures_of_{path.parent.name}_{sha256[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # as an import does: dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"{path} could not be loaded: {type(error).__name__}: {error}") from None
    return module
