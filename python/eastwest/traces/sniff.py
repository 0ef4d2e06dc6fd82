"""Recognition of the format of a recorded file by its content."""

from __future__ import annotations

import re

from eastwest.errors import InputError
from eastwest.traces import companions, jhist, mrv1, spark, swim, table
from eastwest.traces.made import start_of, unknown
from eastwest.traces.source import Source

_RUMEN = re.compile(rb'"(jobID|mapTasks|submitTime|directDependantJobs)"')
#: Names that ``sniff`` returns for companion files of traces.
COMPANIONS = ("topology", "conf")


def sniff(source: Source) -> str:
    """Return the format of ``source``: a key of ``form.SOURCES``, or one of ``COMPANIONS``.

    The bytes of the file are not consumed. Raises ``InputError`` if the file is empty or has no
    known format.
    """
    start = start_of(source)
    if jhist.looks_like(start):
        return "jhist"
    if start.startswith(b"PAR1"):
        return "table"
    if mrv1.looks_like(start):
        return "mrv1"
    if start.lstrip().startswith((b"{", b"[", b"<")):
        return _structured(source, start)
    if swim.looks_like(start):
        return "swim"
    if table.looks_like(start):
        return "table"
    raise unknown(source)


def _structured(source: Source, start: bytes) -> str:
    """Return the format of a file in JSON or XML; ``start`` are the first bytes of the file.

    Raises ``InputError`` if the format is not known.
    """
    if spark.looks_like(start):
        return "spark"
    if start.lstrip().startswith(b"{") and _RUMEN.search(start):
        return "rumen"
    kind, said = companions.kind_of(start)
    if kind:
        return kind
    if said:
        raise InputError(f"{source.name}: contains {said}; the file is not a trace")
    raise unknown(source)
