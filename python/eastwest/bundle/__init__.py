"""Bundles: one archive with everything that is needed to check results and compute them again.

``eastwest bundle`` on the command line, ``eastwest.bundle(...)`` in Python; the guide is
docs/guide/bundles.md. Order of work: make.py finds out what is bundled; of_result.py, of_sweep.py
and of_study.py collect files and runs (contents.py, own_code.py, environment.py); readme.py writes
the page, archive.py the archive with its manifest (form.py). made.py opens a bundle, verify.py
compares files with their hashes, rerun.py simulates the runs again, and compare.py compares the
results.
"""

from __future__ import annotations

from eastwest.bundle.made import Bundle
from eastwest.bundle.make import bundle

__all__ = ["Bundle", "bundle"]
