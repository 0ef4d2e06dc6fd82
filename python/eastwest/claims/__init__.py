"""Published claims: files with published measurements, and the runs of Eastwest that check them.

``eastwest claims`` on the command line, ``eastwest.claims(...)`` in Python; the guide is
docs/guide/claims.md. Order of work: catalogue.py finds the files below ``papers/*/claims``, spec.py
reads them, readings.py has alternative values of settings that a publication leaves open,
profiles.py has other TCPs, work.py runs the sweeps and applies measures, verdict.py compares the
numbers with the bands, record.py stores results beside the claims, figures.py draws them, page.py
writes the pages.
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
    without patterns, all claims run. ``readings`` names readings of the studies (sets of values
    for settings that a publication leaves open), or ``"all"``; by default, each study uses its
    best-supported reading. ``profiles`` names other TCPs of the studies, such as ``"linux"``, or
    ``"all"``. ``quick`` runs fewer seeds and points. ``papers`` is the folder of the studies,
    ``jobs`` the number of processes (0: run in this process), ``store`` the folder of the run
    store, and ``mechanisms`` the user's own mechanisms that scenarios name. ``progress`` is a
    function, or whether to show a bar, as for ``eastwest.run``. The ``verdict`` of an outcome is
    ``holds``, ``differs``, ``undecided`` or ``not run``; ``as_json()`` returns the whole outcome.

    Raises ``InputError`` if no claim matches a pattern, or a study has no reading or profile with
    a given name. Raises ``ProblemsError`` (an ``InputError``) with the problems of the files of
    the chosen claims. Problems of other claim files only cause warnings.
    """
    chosen = select(papers_folder(papers), patterns, lambda line: warnings.warn(line, stacklevel=4))
    if profiles and readings:
        raise InputError(
            "profiles and readings cannot be combined: profiles use the best-supported reading"
        )
    if readings:
        chosen = read_as(chosen, readings)
    if profiles:
        chosen = under(chosen, profiles)
    wanted, recipe = load(mechanisms)
    with core.using(wanted), watched(progress, "claims", ClaimsWords()) as told:
        how = How(quick=quick, jobs=jobs, store=store, progress=told, mechanisms=recipe)
        return run(chosen, how)
