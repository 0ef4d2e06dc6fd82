"""Command group ``eastwest lab``: exercises for courses, and the check of their answers."""

from __future__ import annotations

from eastwest.cli.lazy import group

app = group(
    "Labs about data-centre networks: list them, begin one, check answers.",
    {"list": "labs:lab_list", "start": "labs:lab_start", "check": "labs:lab_check"},
)
