"""Folders that tests read from."""

from pathlib import Path

#: Root of the repository.
ROOT = Path(__file__).resolve().parents[2]
#: Samples of files that Eastwest reads.
DATA = ROOT / "tests" / "data"
#: Folder of the studies.
PAPERS = ROOT / "papers"
