"""Folders that tests read."""

from pathlib import Path

#: The project.
ROOT = Path(__file__).resolve().parents[2]
#: Samples of files that Eastwest reads.
DATA = ROOT / "tests" / "data"
#: The studies.
PAPERS = ROOT / "papers"
