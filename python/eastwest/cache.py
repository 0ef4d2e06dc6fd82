"""Cache folder of the user, for files that Eastwest can rebuild: compiled code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from eastwest.errors import InputError


def folder(*names: str) -> Path:
    """Return the path of a folder in the cache of Eastwest; the folder is not created.

    The cache is ``eastwest`` in ``$XDG_CACHE_HOME``, or else in the system's folder for caches:
    ``~/Library/Caches`` on macOS, ``~/.cache`` elsewhere. Raises ``InputError`` if the user has no
    home folder and the variable is not an absolute path.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    if Path(named).is_absolute():  # other values are invalid by the XDG specification
        base = Path(named)
    else:
        try:
            home = Path.home()
        except RuntimeError:
            raise InputError(
                "this user has no home folder: set $XDG_CACHE_HOME to the absolute path of a "
                "folder for compiled code"
            ) from None
        base = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return base.joinpath("eastwest", *names)
