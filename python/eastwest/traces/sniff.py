"""The format of a recorded file, found by its content."""

from __future__ import annotations

from eastwest.errors import InputError
from eastwest.traces import swim
from eastwest.traces.source import Source
from eastwest.units import clean

#: Bytes that are looked at.
_START = 1 << 16


def sniff(source: Source) -> str:
    """Name the format of ``source``, one of ``form.SOURCES``; it is not read on.

    Raises ``InputError`` where the file is empty or of no known format.
    """
    start = source.peek(_START)
    if not start.strip():
        raise InputError(f"{source.name}: is empty" + (f" ({source.cut})" if source.cut else ""))
    if swim.looks_like(start):
        return "swim"
    shown = clean(start[:40].decode(errors="replace"), 30)
    raise InputError(f"{source.name}: is of no known format; it starts with {shown!r}")
