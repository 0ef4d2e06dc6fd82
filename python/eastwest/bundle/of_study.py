"""The bundle of a study: its folder, and all runs of its claims with scenario and summary.

The claims are run first, with the best-supported reading; runs in the run store are reused. So the
bundle has exactly the runs on which the verdicts are based: further seeds of undecided claims, and
the runs of explanations of claims that differ.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eastwest.bundle import own_code
from eastwest.bundle.contents import Contents
from eastwest.bundle.of_sweep import Stored, add_run, stored
from eastwest.claims import record
from eastwest.claims.catalogue import choose, select
from eastwest.claims.spec import Claim
from eastwest.claims.verdict import Outcome
from eastwest.claims.work import How, Runner
from eastwest.errors import InputError
from eastwest.store import Store
from eastwest.sweep.tables import SweepResult
from eastwest.units import plural, size

#: Folder of studies in the bundle, in which ``eastwest claims`` finds the study.
PAPERS = "papers"
#: Name of the file with the outcomes of the claims.
OUTCOMES = "outcomes.json"
_PICTURES = {".svg", ".png", ".pdf"}
_CODE = {".py", ".sh", ".rs"}
#: Maximum number of bytes of a file of a study; a larger file is only described.
_LARGEST = 50_000_000


@dataclass
class _Use:
    """A run with the sets of runs that contain it, and the name that it has in the bundle."""

    name: str
    run: Stored
    quick: bool
    used_by: list[str] = field(default_factory=list)


def collect(
    contents: Contents,
    study: Path,
    chosen: Sequence[str],
    how: Sequence[How],
    mechanisms: list[Path],
    pictures: bool,
    done: Callable[[Outcome], None] = lambda _: None,
) -> None:
    """Run the claims of a study, and add its folder and the runs to a bundle.

    ``chosen`` has the ids of claims, or beginnings of ids; without any, all claims are run. ``how``
    has the options of a full run, a quick run, or both; ``done`` is called with each outcome.
    """
    claims = _claims(contents, study, chosen)
    uses: dict[str, _Use] = {}
    outcomes: dict[str, list[Outcome]] = {}
    for options in how:
        kind = "quick" if options.quick else "full"
        for claim in claims:
            outcome = _run(claim, options, uses)
            outcomes.setdefault(kind, []).append(outcome)
            done(outcome)
    found = [use.run.result.summary for use in uses.values()]
    own_code.add(contents, own_code.wanted(found), mechanisms)
    for use in uses.values():
        add_run(contents, use.name, use.run, used_by=use.used_by, quick=use.quick)
    for path in sorted({*_files(study), *_of_others(study, claims)}):
        _add_file(contents, path, study.parent, pictures)
    content = {kind: [each.as_json() for each in each_kind] for kind, each_kind in outcomes.items()}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    contents.add_text(OUTCOMES, text, "study")
    contents.facts["claims"] = _rows(outcomes.get("full") or outcomes["quick"])
    contents.facts["measures"] = (study / "measures.py").is_file()
    contents.facts["quick_only"] = "full" not in outcomes


def _claims(contents: Contents, study: Path, chosen: Sequence[str]) -> list[Claim]:
    """Return the chosen claims of a study, or all; the others become a remark of the bundle."""
    every = select(study.parent, [study.name], contents.remarks.append)
    if not chosen:
        return every
    wanted = {claim.path for claim in choose(every, chosen)}
    claims = [claim for claim in every if claim.path in wanted]
    if others := [claim.id for claim in every if claim.path not in wanted]:
        contents.remarks.append(
            f"not in the bundle: runs of the other claims of the study, {', '.join(others)}"
        )
    return claims


def _run(claim: Claim, how: How, uses: dict[str, _Use]) -> Outcome:
    """Run a claim, and add its runs to ``uses``, by their keys in the run store."""
    store = Store(how.store)
    made: dict[str, tuple[list[Stored], int]] = {}

    def seen(name: str, sweep: SweepResult) -> None:
        made[name] = stored(sweep, store)

    outcome = Runner(claim, how, seen=seen).outcome()
    for name, (runs, missing) in made.items():
        if missing:
            raise InputError(
                f"{store.path}: {plural(missing, 'run')} of {claim.id} disappeared from the run "
                "store: repeat the command"
            )
        label = f"{claim.name}-{name}{'-quick' if how.quick else ''}"
        for one in runs:
            use = uses.setdefault(one.key, _Use(f"{label}-p{one.point}-s{one.seed}", one, False))
            use.quick |= how.quick
            if (user := f"{claim.id}/{name}") not in use.used_by:
                use.used_by.append(user)
    return outcome


def _rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return id, published text, measured text and verdicts of claims for the page for people."""
    return [
        {
            "id": each.claim.id,
            "published": each.claim.published,
            "measured": each.measured(),
            "verdict": each.verdict,
            "stored": record.read(each.claim).verdict,
        }
        for each in outcomes
    ]


def _files(study: Path) -> Iterator[Path]:
    """Yield the files of a study, without hidden files and compiled Python."""
    for path in sorted(study.rglob("*")):
        steps = path.relative_to(study).parts
        if any(step.startswith(".") or step == "__pycache__" for step in steps):
            continue
        if path.is_symlink():
            raise InputError(f"{path} is a link: a bundle contains only regular files")
        if path.is_file():
            yield path


def _of_others(study: Path, claims: Sequence[Claim]) -> Iterator[Path]:
    """Yield the files of other studies that the claims name: scenarios, grids, measurements."""
    named: list[Path] = []
    for claim in claims:
        folder = claim.path.parent
        content = tomllib.loads(claim.path.read_text(encoding="utf-8"))
        named += [
            folder / str(content[key])
            for key in ("grid", "open")
            if isinstance(content.get(key), str)
        ]
        named += [
            Path(spec.base_dir, spec.scenario)
            for spec in claim.runs.values()
            if "\n" not in spec.scenario
        ]
        named += [path for _, path in (claim.figure.beside if claim.figure else ())]
    papers = study.parent.resolve()
    for path in {each.resolve() for each in named}:
        if (
            path.is_file()
            and path.is_relative_to(papers)
            and not path.is_relative_to(study.resolve())
        ):
            yield study.parent / path.relative_to(papers)


def _add_file(contents: Contents, path: Path, papers: Path, pictures: bool) -> None:
    role = "picture" if path.suffix in _PICTURES else "code" if path.suffix in _CODE else "study"
    if role == "picture" and not pictures:
        return
    name = f"{PAPERS}/{path.relative_to(papers).as_posix()}"
    contents.add(name, path, role, most=_LARGEST)
    if path.stat().st_size > _LARGEST:
        contents.remarks.append(
            f"{path}: only described, because it has more than {size(_LARGEST)}"
        )
