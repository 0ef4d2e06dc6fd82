"""Figures as files, whole or not at all, in the formats that pages and papers take."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from eastwest.errors import InputError
from eastwest.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What the name of a picture may end with.
ENDINGS = (".png", ".svg", ".pdf")


def check(path: Path) -> None:
    """Refuse a name whose ending is no format of a picture, before any time is spent on it."""
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: the name of a picture ends with {', '.join(ENDINGS)}")


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the name ends with."""
    check(path)
    stream = io.BytesIO()
    figure.savefig(stream, format=path.suffix[1:], facecolor="white")
    write_whole(path, stream.getvalue())
