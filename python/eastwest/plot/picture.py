"""Figures as files, complete or absent, in the formats of pages and papers.

Files are small and repeatable: they have no date and no version, coordinates of SVG have two
decimals (a hundredth of 1/72 inch), paths of SVG are written in their short form, and PNG has a
palette of 256 colours.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eastwest.errors import InputError
from eastwest.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Allowed endings of the name of a picture.
ENDINGS = (".png", ".svg", ".pdf")
_NO_DATES: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
#: Attributes of SVG that hold coordinates in points; a scale is not a coordinate.
_COORDINATES = re.compile(r'( (?:d|x|y|width|height)="|translate\()([^")]*)')
_LONG = re.compile(r"-?\d+\.\d{3,}")
#: Rotations by zero, and spaces at the beginning of a line.
_NO_EFFECT = re.compile(r' transform="rotate\(-0 [^"]*\)"|(?<=\n) +')
#: A command of a path of SVG and its numbers.
_COMMAND = re.compile(r"([A-Za-z])([^A-Za-z]*)")


def check(path: Path) -> None:
    """Raise ``InputError`` for a name whose ending is not a format of a picture."""
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: the name of a picture ends with {', '.join(ENDINGS)}")


def save(figure: Figure, path: Path, dpi: int | None = None) -> None:
    """Write a figure in the format of the ending of the name."""
    check(path)
    write_whole(path, drawn(figure, path.suffix, dpi))


def drawn(figure: Figure, ending: str, dpi: int | None = None) -> bytes:
    """Return the bytes of the file of a figure: of .png, .svg or .pdf."""
    stream = io.BytesIO()
    options: dict[str, Any] = {} if dpi is None else {"dpi": dpi}
    figure.savefig(
        stream, format=ending[1:], facecolor="white", metadata=_NO_DATES[ending], **options
    )
    data = stream.getvalue()
    if ending == ".svg":
        text = _NO_EFFECT.sub("", data.decode())
        return _COORDINATES.sub(_short, text).encode()
    return with_palette(data) if ending == ".png" else data


def with_palette(data: bytes) -> bytes:
    """Return a PNG file with a palette of 256 colours, where that is smaller."""
    from PIL import Image  # noqa: PLC0415  comes with matplotlib, and takes its time

    smaller = io.BytesIO()
    with Image.open(io.BytesIO(data)) as image:
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(smaller, "PNG", optimize=True)
    return min(data, smaller.getvalue(), key=len)


def _short(found: re.Match[str]) -> str:
    """Return an attribute of SVG with two decimals in each number, a path in its short form."""
    text = _LONG.sub(lambda number: f"{float(number[0]):.2f}", found[2])
    return found[1] + (_short_path(text) if found[1] == ' d="' else text)


def _short_path(path: str) -> str:
    """Return a path of SVG without spaces around commands, with H and V for straight lines.

    A line to a point with the same y is ``H x``, one to a point with the same x is ``V y``
    (SVG 1.1, section 8.3.4). Paths with relative commands are returned as they are.
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
        # After z the current point is the start of the subpath, which is not kept here.
        at = values[-2:]
    return "".join(parts)
