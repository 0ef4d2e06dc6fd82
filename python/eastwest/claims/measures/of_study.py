"""Measures and values of one study: functions in the file ``measures.py`` of its folder.

The file is Python code, which is executed when a claim of the study is read. Its functions are
registered with the decorators ``measure`` and ``run_value`` of ``eastwest.claims.measures``, and
only the claims of this study can use them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from eastwest import user_code
from eastwest.claims.measures.base import REGISTERED, SHARED, Known
from eastwest.errors import InputError

#: Name of the Python file with measures and values in the folder of a study.
FILE = "measures.py"
_KIND = "eastwest_measures"


def known_in(study: Path) -> Known:
    """Return the measures and values that the claims of the study in this folder may name.

    Raises ``InputError`` if ``measures.py`` of the study cannot be executed, or if one of its
    measures or values has the name of a shared measure or value.
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
                raise InputError(
                    f"{study / FILE}: {name} is already the name of a shared {what}: choose another"
                )
    return Known({**SHARED.measures, **own.measures}, {**SHARED.values, **own.values})


def module_of(study: Path) -> ModuleType:
    """Return the module of a study's ``measures.py``; the file is executed at the first call."""
    path = (study / FILE).resolve()
    source = user_code.read(path)
    loaded = sys.modules.get(user_code.module_name(path, source, _KIND))
    return loaded or user_code.execute(path, source, _KIND)
