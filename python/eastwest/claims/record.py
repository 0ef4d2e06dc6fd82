"""Stored results of claims: ``papers/STUDY/results/NAME`` as JSON and CSV, and a figure.

The JSON file has the output of ``--json`` and its origin: date, version, hash of the compiled core,
and command. Two hashes, of the claim's measures and explanations, show whether the claim has
changed since the result was stored. Each file is replaced in one step. The stored figure is an SVG
file for the reading that gives the verdict; figures for other readings are drawn only with
``--out``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eastwest import core, spreadsheet
from eastwest.claims.spec import Claim, Metric, load
from eastwest.claims.verdict import DIFFERS, Outcome, Part
from eastwest.errors import InputError
from eastwest.files import write_whole

#: Version of the layout of the JSON file with the stored result of a claim.
RECORD_FORMAT = 1
_LARGEST = 64 * 1024 * 1024


@dataclass(frozen=True)
class Record:
    """A claim with the JSON content of its stored result, or None without a stored result."""

    claim: Claim
    content: dict[str, Any] | None

    @property
    def measured(self) -> bool:
        """Whether the stored numbers belong to the present claim: equal hash, and enough seeds."""
        return (
            self.content is not None
            and self.content.get("claim_sha256") == self.claim.digest
            and self._seeds_of(self.claim.metrics)
        )

    @property
    def current(self) -> bool:
        """Whether the stored numbers and explanations belong to the present claim.

        Explanations are compared only if a metric differs.
        """
        if self.content is None or not self.measured:
            return False
        pairs = zip(self.claim.metrics, self.content["metrics"], strict=True)
        differing = {metric.name for metric, part in pairs if part["verdict"] == DIFFERS}
        asked = [
            metric
            for explanation in self.claim.explanations
            if differing & {*explanation.of}
            for metric in explanation.metrics
        ]
        if differing and self.content.get("explained_sha256") != self.claim.explained_digest:
            return False
        return self._seeds_of(asked)

    def _seeds_of(self, metrics: Iterable[Metric]) -> bool:
        """Whether the stored runs of ``metrics`` have at least the number of seeds of the claim."""
        had = self.content.get("run_seeds", {}) if self.content else {}
        names = {name for metric in metrics for name in metric.runs}
        return all(had.get(name, 0) >= self.claim.runs[name].first_seeds for name in names)

    def parts(self) -> list[Part]:
        """Return the stored metrics and values; empty unless they belong to the present claim."""
        if self.content is None or not self.measured:
            return []
        pairs = zip(self.claim.metrics, self.content["metrics"], strict=True)
        return [Part.kept(metric, part) for metric, part in pairs]

    @property
    def verdict(self) -> str:
        """Stored verdict; ``not run`` without a stored result of the present claim."""
        return str(self.content["verdict"]) if self.content and self.current else "not run"

    @property
    def classes(self) -> list[str]:
        """Stored classes of the reasons why the claim differs; empty where it does not differ."""
        return list(self.content.get("classes", [])) if self.content and self.current else []


def folder_of(claim: Claim, below: Path | None = None) -> Path:
    """Return the folder of a claim's results: ``STUDY/results`` in the study's folder or ``below``.

    Results under another TCP profile than the claim's own, or under another reading than ``first``,
    are in a subfolder (``Claim.variant``).
    """
    study = claim.path.parent.parent
    return (study if below is None else below / study.name) / "results" / claim.variant


def read(claim: Claim) -> Record:
    """Return the record of a claim, with its stored result.

    Raises ``InputError`` if the result is damaged, or of a newer version of Eastwest.
    """
    path = folder_of(claim) / f"{claim.name}.json"
    if not path.is_file():
        return Record(claim, None)
    if path.stat().st_size > _LARGEST:
        raise InputError(
            f"{path} is damaged: it is larger than 64 MiB, the maximum for a result of a claim"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = content["format"] <= RECORD_FORMAT and content["id"] == claim.id
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: {error!r}") from None
    if not known:
        raise InputError(f"{path} belongs to another claim, or to a newer version of Eastwest")
    return Record(claim, content)


def write(
    outcome: Outcome,
    folder: Path,
    command: str,
    before: dict[str, Any] | None = None,
    pictures: Sequence[str] = (".svg", ".png"),
) -> list[Path]:
    """Write a claim's result, table and figure into a folder; return the paths of the files.

    ``command`` is the command line that the result names. ``pictures`` are the endings of the
    files of the figure. If the measured numbers are those of a stored result, ``before`` is this
    result: the numbers keep their origin (date, version), the explanations get their own origin in
    ``explained``, and table and figures are not written.
    """
    from eastwest.claims.figures import draw  # noqa: PLC0415  slow to load

    name = outcome.claim.name
    made = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "version": core.version(),
        "build": core.build(),
        "command": command,
    }
    content: dict[str, Any] = {
        "format": RECORD_FORMAT,
        **outcome.as_json(),
        "statement": outcome.claim.statement,
        "source": outcome.claim.source,
        **({key: before[key] for key in made} | {"explained": made} if before else made),
        "claim_sha256": outcome.claim.digest,
        "explained_sha256": outcome.claim.explained_digest,
    }
    if before:
        measured = {run for metric in outcome.claim.metrics for run in metric.runs}
        had = {run: count for run, count in before["run_seeds"].items() if run in measured}
        content["run_seeds"] |= had
        # Division by the factor and multiplication can change the last bit: keep stored numbers.
        numbers = ("value", "low", "high")
        content |= {key: before[key] for key in numbers}
        for part, earlier in zip(content["metrics"], before["metrics"], strict=True):
            part |= {key: earlier[key] for key in numbers}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    files = {f"{name}.json": text.encode()}
    if not before:
        files |= {f"{name}.csv": _table(outcome).encode()}
        files |= {f"{name}{end}": data for end, data in draw(outcome, pictures).items()}
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        write_whole(folder / file, data)
    return [folder / file for file in files]


def kept_pictures(claim: Claim) -> tuple[str, ...]:
    """Return the file endings of the figure that is stored with the claim's result, or none.

    A figure is stored only for the best-supported reading with the claim's own TCP profile.
    """
    return (".svg",) if claim.variant == load(claim.path).variant else ()


def _table(outcome: Outcome) -> str:
    """Return the rows of all metrics as CSV text, each with name, value and band of the metric."""
    head = ["metric", "value", "interval_low", "interval_high", "unit", "band_low", "band_high"]
    columns = list(
        dict.fromkeys(key for part in outcome.parts for row in _rows(part.measured) for key in row)
    )
    rows: list[list[object]] = []
    for part in outcome.parts:
        band = (part.metric.unit, part.metric.low, part.metric.high)
        for row in _rows(part.measured):
            measured = [row.get(key) for key in columns]
            rows.append([part.metric.name, *part.numbers(), *band, *measured])
    return spreadsheet.table([*head, *columns], rows)


def _rows(measured: Any) -> Sequence[dict[str, Any]]:
    return (measured.rows or [{}]) if measured is not None else [{}]
