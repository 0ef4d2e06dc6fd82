"""Scenarios and traces that are part of the package."""

from __future__ import annotations

import gzip
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

#: Folder of the shipped scenarios.
SCENARIOS = _PACKAGE / "scenarios"
#: Folder of the shipped sweeps.
SWEEPS = SCENARIOS / "sweeps"
#: Folder of the shipped optimisations.
OPTIMISATIONS = SCENARIOS / "optimisations"
#: Folder of the shipped traces and flow-size distributions.
DATA = _PACKAGE / "data"


def names() -> list[str]:
    """Return the names of the shipped scenarios, sorted."""
    return sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def find(name: str) -> Path | None:
    """Return the path of the shipped scenario ``name`` (upper or lower case), or None."""
    wanted = name.lower().removesuffix(".toml")
    for path in sorted(SCENARIOS.glob("*.toml")):
        if path.stem.lower() == wanted:
            return path
    return None


def find_in(folder: Path, name: str) -> Path | None:
    """Return the path of ``NAME.toml`` in a folder (upper or lower case), or None."""
    wanted = name.lower().removesuffix(".toml")
    for path in sorted(folder.glob("*.toml")):
        if path.stem.lower() == wanted:
            return path
    return None


def traces() -> dict[str, Path]:
    """Return the paths of the shipped traces by their names in scenarios."""
    swim = DATA / "swim"
    return {
        "fb-2009": swim / "FB-2009_samples_24_times_1hr_0.tsv",
        "fb-2009-first-50": swim / "FB-2009_samples_24_times_1hr_0_first50jobs.tsv",
        "fb-2010": swim / "FB-2010_samples_24_times_1hr_0.tsv.gz",
    }


def content(path: Path) -> Path | bytes:
    """Return the content of a shipped trace as runs record it: unpacked, if it is compressed."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path
