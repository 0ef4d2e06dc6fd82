"""Generated scenarios (cases) checked against oracles, and the tally of what was covered.

The scenarios are made and checked in Rust (``crates/fuzz``); an oracle is a rule that each result
must obey. This module writes the tally, a JSON file that sums up all campaigns (calls of the
command), and writes each failing case as a folder that can be run. A level is a setting with one
value.
"""

from __future__ import annotations

import gzip
import json
import os
import shlex
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

from eastwest import core, shipped
from eastwest.errors import InputError, MechanismError, did_you_mean
from eastwest.files import write_whole

#: Maximum number of bytes of a tally, decompressed.
MOST_BYTES = 64_000_000
#: Version of the layout of the tally file.
FORMAT = 1
#: Number of tries from which a pair of levels counts as covered.
ENOUGH = 50
#: Number of refusals from which a pair of levels that was never allowed counts as forbidden by
#: ``eastwest check``.
REFUSED_AFTER = 12
#: Wall time in s after which a case counts as endless.
LONGEST_S = 300.0

#: Fields of ``Tally``, and keys of the tally file, that are summed over campaigns. ``Tally.pairs``
#: has the counts for pairs of values.
SUMS = ("cases", "refused", "too_large", "kept", "in_parts", "events", "packets")

Level = tuple[str, str]


@dataclass
class Tally:
    """Counts of the cases that fuzzing campaigns have covered so far."""

    cases: int = 0
    refused: int = 0
    too_large: int = 0
    kept: int = 0
    in_parts: int = 0
    events: int = 0
    packets: int = 0
    #: For each pair of levels: how often it was tried, and how often ``check`` refused it.
    pairs: dict[tuple[Level, Level], tuple[int, int]] = field(default_factory=dict)
    #: One entry for each campaign: date, seed, cases, version and failures.
    campaigns: list[dict[str, Any]] = field(default_factory=list)

    def counts(self, levels: Sequence[Level]) -> list[tuple[int, int]]:
        """Return (tries, refusals) of each pair of levels, by their higher, then their lower index.

        A level is (setting, value); its index is its place in ``levels``. The simulator has this
        order, too.
        """
        return [
            self.pairs.get((levels[low], levels[high]), (0, 0))
            for high in range(len(levels))
            for low in range(high)
        ]

    def add(self, levels: Sequence[Level], result: dict[str, Any]) -> None:
        """Add a campaign's numbers of cases, events, packets and tried pairs to the tally.

        ``result`` is the result of ``core.fuzz``, whose pairs are in the order of ``counts``.
        """
        for name in SUMS:
            setattr(self, name, getattr(self, name) + result[name])
        numbered = (
            (levels[low], levels[high]) for high in range(len(levels)) for low in range(high)
        )
        for pair, (tried, refused) in zip(numbered, result["pairs"], strict=True):
            if tried or refused:
                before = self.pairs.get(pair, (0, 0))
                self.pairs[pair] = (before[0] + tried, before[1] + refused)

    def rare(self, levels: Sequence[Level]) -> list[tuple[Level, Level, int, int]]:
        """Return (level, level, tries, refusals) of pairs with 1 to ``ENOUGH`` − 1 tries."""
        found = []
        for pair in combinations(levels, 2):
            tried, refused = self.pairs.get(pair, (0, 0))
            if 0 < tried < ENOUGH:
                found.append((*pair, tried, refused))
        return found

    def never(self) -> list[tuple[Level, Level, int]]:
        """Return (level, level, refusals) of each pair of levels that ``check`` never allowed.

        Pairs with fewer than ``REFUSED_AFTER`` refusals are left out.
        """
        return [
            (*pair, refused)
            for pair, (tried, refused) in self.pairs.items()
            if tried == 0 and refused >= REFUSED_AFTER
        ]


def load(path: Path) -> Tally:
    """Return the tally of a file; an empty tally if the file is missing.

    Raises ``InputError`` if the file is damaged. A file whose name ends with ``.gz`` is compressed
    with gzip.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        held = json.loads(data) if len(data) <= MOST_BYTES else None
    except FileNotFoundError:
        return Tally()
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: is not a tally of eastwest fuzz: {error}") from None
    if held is None and len(data) > MOST_BYTES:
        raise InputError(f"{path}: has more than {MOST_BYTES:,} bytes, the limit of a tally")
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise InputError(f"{path}: is not a tally of eastwest fuzz of format {FORMAT}")
    try:
        return _read(held)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"{path}: is a damaged tally: {error!r:.80}") from None


def _read(held: dict[str, Any]) -> Tally:
    """Return the tally that is stored in the JSON content of a tally file.

    Raises ``LookupError``, ``TypeError``, ``ValueError`` or ``AttributeError`` where the content is
    damaged.
    """
    levels = [tuple(level) for level in held["levels"]]
    pairs = {}
    for high, row in enumerate(held["pairs"]):
        tried, refused = row
        for low, counts in enumerate(zip(tried, refused, strict=True)):
            if any(counts):
                pairs[levels[low], levels[high]] = counts
    return Tally(**{name: held[name] for name in SUMS}, pairs=pairs, campaigns=held["campaigns"])


def save(tally: Tally, levels: Sequence[Level], path: Path) -> None:
    """Write a tally to ``path``, without pairs of levels that are not in ``levels``."""
    counts = iter(tally.counts(levels))
    rows = []
    for high in range(len(levels)):
        row = [next(counts) for _ in range(high)]
        rows.append([[tried for tried, _ in row], [refused for _, refused in row]])
    held: dict[str, Any] = {"format": FORMAT}
    for name in SUMS:
        held[name] = getattr(tally, name)
    lines = [json.dumps(held, indent=1).removesuffix("\n}")]
    campaigns = ",\n".join("  " + json.dumps(campaign) for campaign in tally.campaigns)
    lines.append(f' "campaigns": [\n{campaigns}\n ]')
    lines.append(' "levels": ' + json.dumps([list(level) for level in levels]))
    inner = ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rows)
    lines.append(f' "pairs": [\n{inner}\n ]\n}}')
    data = (",\n".join(lines) + "\n").encode()
    write_whole(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


@dataclass
class Watchdog:
    """Progress callback that ends the process (exit code 3) if a case takes ``LONGEST_S``."""

    progress: Callable[[int, int], None]
    seed: int
    since: dict[int, float] = field(default_factory=dict)

    def __call__(self, done: int, failed: int, current: list[int]) -> None:
        """Report the numbers of done and failed cases; end the process if a case takes too long.

        ``current`` are the numbers of the cases in progress.
        """
        now = time.monotonic()
        self.since = {case: self.since.get(case, now) for case in current}
        for case, started in self.since.items():
            if now - started > LONGEST_S:
                sys.stderr.write(
                    f"eastwest: a generated scenario has not ended in {LONGEST_S:.0f} s; "
                    f"repeat it with: {_again(self.seed, case)}\n"
                )
                sys.stderr.flush()
                os._exit(3)
        self.progress(done, failed)


def levels() -> list[Level]:
    """Return all levels (path and value of a setting), in the simulator's order."""
    return core.fuzz_levels()


@dataclass(frozen=True)
class Campaign:
    """Settings of a fuzzing campaign: which cases it generates, and how many at once."""

    cases: int
    seed: int
    #: Number of the first case.
    first: int
    #: Number of concurrent cases.
    at_once: int
    #: Whether pairs of settings with low counts in the tally come first.
    focus: bool
    #: Settings that each case has, as ``PATH=VALUE`` or, for tables and lists, ``PATH``.
    have: Sequence[str] = ()


def run(wanted: Campaign, tally: Tally, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Run a fuzzing campaign, add its counts to ``tally``, and return the result of ``core.fuzz``.

    ``wanted`` names the cases; ``progress`` is called with the numbers of done and of failed cases.
    The result has the numbers of cases, events and packets, how often each pair of settings was
    tried and refused, and in ``found`` the cases that failed a check. Raises ``InputError`` where
    ``wanted.have`` names a setting that fuzzing does not vary.
    """
    all_levels = levels()
    with tempfile.TemporaryDirectory(prefix="eastwest-fuzz-") as folder:
        watchdog = Watchdog(progress, wanted.seed)
        result = _judged(
            watchdog,
            folder,
            str(shipped.DATA),
            wanted.seed,
            wanted.first,
            wanted.cases,
            wanted.at_once,
            [_level(text, all_levels) for text in wanted.have],
            tally.counts(all_levels) if wanted.focus else None,
            ENOUGH,
            watchdog,
        )
        on_disk = {path.name: path.read_text(encoding="utf-8") for path in Path(folder).iterdir()}
    for one in result["found"]:
        one["files"] |= {name: text for name, text in on_disk.items() if name in one["drawn"]}
    tally.add(all_levels, result)
    tally.campaigns.append(
        {
            "date": date.today().isoformat(),
            "version": core.version(),
            "seed": wanted.seed,
            "first": wanted.first,
            "cases": result["cases"],
            "found": [f"{one['oracle']}: {one['message'][:200]}" for one in result["found"]],
        }
    )
    return result


def _judged(watchdog: Watchdog, *arguments: Any) -> dict[str, Any]:
    """Return the result of ``core.fuzz`` for ``arguments``.

    If a mechanism of the user fails, the error names the cases in progress.
    """
    try:
        return core.fuzz(*arguments)
    except MechanismError as error:
        if not watchdog.since:
            raise
        cases = ", ".join(str(case) for case in sorted(watchdog.since))
        which = "case" if len(watchdog.since) == 1 else "one of the cases"
        again = "; ".join(_again(watchdog.seed, case) for case in sorted(watchdog.since))
        raise MechanismError(f"{error} ({which} {cases}: {again})", error.trace) from error


def _again(seed: int, case: int) -> str:
    """Return the command that repeats one case of a campaign."""
    return f"eastwest fuzz --seed {seed} --first {case} --cases 1"


def _level(text: str, known: Sequence[Level]) -> Level:
    """Return the level that ``PATH=VALUE`` or ``PATH`` names; raise ``InputError`` if unknown."""
    path, _, value = text.partition("=")
    level = (path.strip(), value.strip() or "given")
    if level in known:
        return level
    paths = sorted({each[0] for each in known})
    if level[0] in paths:
        allowed = ", ".join(each[1] for each in known if each[0] == level[0])
        raise InputError(f"--have {text!r:.80}: {level[0]} must be one of {allowed}")
    hint = did_you_mean(level[0], paths)
    raise InputError(
        f"--have {text!r:.80}: {level[0]!r:.60} is not a setting that fuzzing varies{hint}"
    )


def write_case(found: dict[str, Any], folder: Path, mechanisms: Sequence[str] = ()) -> Path:
    """Write a failing case into the folder ``case-N`` below ``folder``, and return this folder.

    ``drawn.toml`` is the generated scenario, ``scenario.toml`` a smaller one that fails, too.
    ``why.txt`` names the broken oracle. ``found`` is an entry of ``found`` in the result of
    ``run``. ``mechanisms`` are folders and files of the user's own mechanisms (``--with``).
    """
    place = folder / f"case-{found['case']}"
    place.mkdir(parents=True, exist_ok=True)
    own = [word for one in mechanisms for word in ("--with", str(Path(one).resolve()))]
    again = shlex.join(["eastwest", "run", "scenario.toml", *own])
    _write(place / "scenario.toml", found["reduced"])
    _write(place / "drawn.toml", found["drawn"])
    _write(
        place / "why.txt",
        f"oracle: {found['oracle']}\nthreads: {found['threads']}\n{found['message']}\n"
        f"again: {again}\n",
    )
    for name, text in found["files"].items():
        _write(place / name, text)
    return place


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode())
