"""Writer of figures as PNG, SVG and PDF files, and of their numbers as CSV beside them.

After a failure there is no partial file.

Files are small, and equal for equal figures: they have no date and no version. Coordinates in SVG
have two decimals (in points of 1/72 inch), paths in SVG have short commands for horizontal and
vertical lines, and PNG has a palette of 256 colours.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from eastwest.errors import InputError
from eastwest.files import write_whole
from eastwest.plot.numbers import as_csv, is_ours

#: Allowed endings of the file name of a picture.
ENDINGS = (".png", ".svg", ".pdf")
_NO_DATES: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
#: Pattern of SVG attributes that contain coordinates in points; scale factors do not match.
_COORDINATES = re.compile(r'( (?:d|x|y|width|height)="|translate\()([^")]*)')
_LONG = re.compile(r"-?\d+\.\d{3,}")
#: Pattern of SVG text that can be removed: rotations by zero, spaces at the beginning of a line,
#: and ids that matplotlib invents for groups.
_NO_EFFECT = re.compile(r' transform="rotate\(-0 [^"]*\)"|(?<=\n) +| id="[A-Za-z0-9.]+_\d+"(?=>)')
_STYLE = re.compile(r'(?<= style=")[^"]*')
_SPACE = re.compile(r"(?<=[;:]) ")
#: Pattern of one command of an SVG path: its letter, and its numbers.
_COMMAND = re.compile(r"([A-Za-z])([^A-Za-z]*)")


def check(path: Path) -> None:
    """Raise ``InputError`` if a file name does not end with ``.png``, ``.svg`` or ``.pdf``."""
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: the name of a picture must end with {' or '.join(ENDINGS)}")


def save(
    figure: Figure, path: Path | str, dpi: int | None = None, *, csv: bool | Path | str = False
) -> None:
    """Write a figure to a file, and with ``csv`` its numbers to a CSV file.

    ``path`` ends with ``.png``, ``.svg`` or ``.pdf``. ``csv`` is the CSV file; ``True``: the file
    beside ``path`` with the ending ``.csv``, which must be new or have numbers of a figure. The
    table has one row for each point, with the columns of :func:`numbers`. Raises ``InputError`` for
    names that are not allowed, and for a figure without numbers.
    """
    path = Path(path)
    check(path)
    files = {path: drawn(figure, path.suffix, dpi)}
    if csv is not False:
        beside = path.with_suffix(".csv") if csv is True else Path(csv)
        if csv is True:
            _check_beside(beside)
        files[beside] = as_csv(figure)
    for file, data in files.items():
        write_whole(file, data)


def _check_beside(path: Path) -> None:
    """Raise ``InputError`` if the file exists and was not written by ``save`` for a figure."""
    try:
        with path.open("rb") as file:
            begin = file.read(100)
    except FileNotFoundError:
        return
    if not is_ours(begin.decode(errors="replace")):
        raise InputError(
            f"{path} already exists and does not have the numbers of a figure: rename the picture "
            "or the CSV file"
        )


def drawn(figure: Figure, ending: str, dpi: int | None = None) -> bytes:
    """Return a figure as the bytes of a file; ``ending`` is ``.png``, ``.svg`` or ``.pdf``."""
    stream = io.BytesIO()
    options: dict[str, Any] = {} if dpi is None else {"dpi": dpi}
    # Publishers reject fonts of Type 3 in PDF files, which are the default of matplotlib.
    with mpl.rc_context({"pdf.fonttype": 42}):
        figure.savefig(
            stream, format=ending[1:], facecolor="white", metadata=_NO_DATES[ending], **options
        )
    data = stream.getvalue()
    if ending == ".svg":
        text = _NO_EFFECT.sub("", data.decode())
        text = _STYLE.sub(lambda style: _SPACE.sub("", style[0]), text)
        return _COORDINATES.sub(_short, text).encode()
    return with_palette(data) if ending == ".png" else data


def with_palette(data: bytes) -> bytes:
    """Return a PNG file with at most 256 colours; unchanged if the file would not be smaller."""
    from PIL import Image  # noqa: PLC0415  comes with matplotlib, and takes its time

    smaller = io.BytesIO()
    with Image.open(io.BytesIO(data)) as image:
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(smaller, "PNG", optimize=True)
    return min(data, smaller.getvalue(), key=len)


def _short(found: re.Match[str]) -> str:
    """Return the SVG attribute of a match with at most two decimals and shortened paths."""
    text = _LONG.sub(lambda number: f"{float(number[0]):.2f}", found[2])
    return found[1] + (_short_path(text) if found[1] == ' d="' else text)


def _short_path(path: str) -> str:
    """Return an SVG path without spaces around commands, with H and V for straight lines.

    A horizontal line to x is ``H x``, and a vertical line to y is ``V y`` (SVG 1.1, section
    8.3.4). Paths with relative commands are returned unchanged.
    """
    parts: list[str] = []
    at: list[str] = []
    for command, numbers in _COMMAND.findall(path):
        values = numbers.split()
        if command not in "MLQCz":
            return path
        if command == "L" and len(values) == len(at) == 2 and values[1] == at[1]:
            parts.append("H" + values[0])
        elif command == "L" and len(values) == len(at) == 2 and values[0] == at[0]:
            parts.append("V" + values[1])
        else:
            parts.append(command + " ".join(values))
        # The command z (close the path) moves back to the start of the path. This point is not
        # stored, so the next line is written in full.
        at = values[-2:]
    return "".join(parts)
