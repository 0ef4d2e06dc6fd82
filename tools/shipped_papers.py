"""Copies the parts of the published studies that a wheel ships, for ``make wheel``.

``python tools/shipped_papers.py FOLDER`` writes a copy of ``papers`` with claims, scenarios and
their inputs, spaces of optimisations, measures, measurements that figures show, and the JSON of
kept results, from which ``eastwest claims --list`` reads verdicts. It has no pages, tables and
pictures.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

PAPERS = Path(__file__).resolve().parents[1] / "papers"
#: Folders of a study of which a wheel has only the files with these endings.
_ENDINGS = {"results": {".json"}, "measured": {".csv", ".gz"}, "ns3": {".csv", ".gz"}}


def shipped(papers: Path = PAPERS) -> Iterator[Path]:
    """Yield the files of the studies that a wheel ships."""
    for path in sorted(papers.glob("*/**/*")):
        _, folder, *_ = path.relative_to(papers).parts
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        if folder in _ENDINGS:
            wanted = path.suffix in _ENDINGS[folder]
        else:
            wanted = folder == "scenarios" or path.suffix == ".toml" or path.name == "measures.py"
        if wanted:
            yield path


def main(target: Path) -> None:
    """Write the copy into a folder, in place of an earlier copy."""
    shutil.rmtree(target, ignore_errors=True)
    for path in shipped():
        copy = target / path.relative_to(PAPERS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
