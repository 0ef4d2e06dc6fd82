"""Published claims: files with measurements of others, and how to check them with Eastwest.

``eastwest claims`` on the command line, ``eastwest.claims(...)`` in Python; the guide is
docs/guide/claims.md. Order of work: catalogue.py finds the files below ``papers/*/claims``, spec.py
reads them, readings.py has the values that the source's words support, profiles.py other TCPs,
work.py runs their sweeps and applies measures, verdict.py compares with the bands, record.py stores
results beside the claims, figures.py draws them, page.py writes the pages.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from eastwest import core
from eastwest.claims.catalogue import papers_folder, read_as, select, under
from eastwest.claims.verdict import Outcome
from eastwest.claims.work import How, Progress, run
from eastwest.errors import InputError
from eastwest.mechanisms.load import Mechanism, load
from eastwest.progress import ClaimsWords, watched

__all__ = ["Outcome", "claims"]


def claims(
    *patterns: str,
    profiles: Sequence[str] = (),
    readings: Sequence[str] = (),
    quick: bool = False,
    jobs: int | None = None,
    papers: str | Path | None = None,
    store: str | Path | None = None,
    mechanisms: Sequence[Mechanism] = (),
    progress: Progress | bool | None = None,
) -> Sequence[Outcome]:
    """Run published claims and return their outcomes.

    ``patterns`` are ids such as ``"incast/T1"``, folders of studies (``"incast"``) or globs;
    without any, all claims run. ``readings`` names readings of their studies, or ``"all"``; without
    any, each study has its best-supported one. ``profiles`` names other TCPs, such as ``"linux"``,
    in the same way. ``quick`` runs fewer seeds and points. ``papers`` is the folder of the
    studies, ``jobs`` the number of processes (0: run in this process), ``store`` the folder of the
    run store, ``mechanisms`` the user's own mechanisms that scenarios name, and ``progress`` a
    function or whether to show a bar, as for ``eastwest.run``. The ``verdict`` of an outcome is
    ``holds``, ``differs``, ``undecided`` or ``not run``; ``as_json()`` returns all of it.

    Raises ``InputError`` where a pattern fits no claim, ``ProblemsError`` (an ``InputError``) with
    the problems of the files of these claims. Wrong files beside them are warnings.
    """
    chosen = select(papers_folder(papers), patterns, lambda line: warnings.warn(line, stacklevel=4))
    if profiles and readings:
        raise InputError(
            "profiles and readings cannot be combined: profiles use the best-supported one"
        )
    if readings:
        chosen = read_as(chosen, readings)
    if profiles:
        chosen = under(chosen, profiles)
    wanted, recipe = load(mechanisms)
    with core.using(wanted), watched(progress, "claims", ClaimsWords()) as told:
        how = How(quick=quick, jobs=jobs, store=store, progress=told, mechanisms=recipe)
        return run(chosen, how)
