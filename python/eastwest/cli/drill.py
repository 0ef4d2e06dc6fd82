"""Command ``eastwest drill``: runs packetdrill scripts against the simulated TCP."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from eastwest import core
from eastwest.cli.guard import BAD_INPUT, clean_lines, errors, guarded
from eastwest.cli.options import JsonArrayOption, one_of
from eastwest.units import clean

#: Maximum size of a packetdrill script, in bytes.
MOST_BYTES = 4 << 20
#: Maximum number of alterations in a message about a script that passes although it was altered.
SHOWN = 5


class Profile(StrEnum):
    """The TCP profile of the simulated endpoint."""

    linux = "linux"
    classic = "classic"


@dataclass(frozen=True)
class Outcome:
    """Result of one packetdrill script: passed or failed, with a message."""

    file: str
    passed: bool
    message: str


@guarded
def drill(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.pkt...", help="packetdrill scripts, or folders of scripts."),
    ],
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="linux|classic",
            help="TCP profile of the endpoint; default: the profile in the script, else linux.",
        ),
    ] = None,
    mutate: Annotated[
        bool,
        typer.Option(
            "--mutate",
            help="Also test the scripts: a script that passes must fail after one expected "
            "sequence number or window is altered by a segment, or one time by 50 ms.",
        ),
    ] = False,
    as_json: JsonArrayOption = False,
) -> None:
    """Run packetdrill scripts against the simulated TCP endpoint, in simulated time."""
    wanted = one_of(Profile, profile, "--profile") if profile is not None else None
    outcomes: list[Outcome] = []
    readable = False
    for file in _scripts(files):
        outcome, read = _play(file, wanted, mutate)
        readable |= read
        outcomes.append(outcome)
        if not as_json:
            _show(outcome)
    failed = sum(not o.passed for o in outcomes)
    if as_json:
        typer.echo(json.dumps([asdict(o) for o in outcomes]))
    else:
        typer.echo(f"{len(outcomes) - failed} passed, {failed} failed")
    if not readable:
        errors().print(
            "eastwest: none of the given files is a readable packetdrill script", markup=False
        )
        raise typer.Exit(BAD_INPUT)
    if failed:
        raise typer.Exit(1)


def _scripts(files: list[Path]) -> list[Path]:
    """Return the paths of all scripts: given files, and the ``.pkt`` files in given folders."""
    scripts: list[Path] = []
    for file in files:
        scripts.extend(sorted(file.rglob("*.pkt")) if file.is_dir() else [file])
    return scripts


def _play(file: Path, profile: Profile | None, mutate: bool) -> tuple[Outcome, bool]:
    """Run a packetdrill script; return (result, whether the script could be read).

    ``profile`` replaces the TCP profile of the script; ``mutate`` also tests altered scripts.
    """
    try:
        with file.open("rb") as source:
            data = source.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            return Outcome(str(file), False, "is longer than 4 MiB, the maximum of a script"), False
        text = data.decode()
    except UnicodeDecodeError:
        return Outcome(str(file), False, "is not a text in UTF-8"), False
    except OSError as error:
        return Outcome(str(file), False, (error.strerror or str(error)).lower()), False
    result = core.drill(text, profile.value if profile else None, mutate)
    if not result["passed"]:
        message = f"{result['line']}:{result['column']}: {result['message']}"
        return Outcome(str(file), False, message), result["readable"]
    unnoticed = result["unnoticed"]
    if unnoticed:
        named = "; ".join(f"line {line}: {what}" for line, what in unnoticed[:SHOWN])
        more = f" and {len(unnoticed) - SHOWN} more" if len(unnoticed) > SHOWN else ""
        message = f"the script still passes after one alteration of {named}{more}"
        return Outcome(str(file), False, message), True
    message = f"fails after each of {result['alterations']} alterations, as expected"
    return Outcome(str(file), True, message if mutate else ""), True


def _show(outcome: Outcome) -> None:
    name = clean(outcome.file, 500)
    if outcome.passed:
        note = f" ({outcome.message})" if outcome.message else ""
        typer.echo(f"passed  {name}{note}")
    else:
        # A line number follows the file name without a blank, so that editors find the line.
        colon = ":" if outcome.message[:1].isdigit() else ": "
        typer.echo(f"FAILED  {name}{colon}{clean_lines(outcome.message)}")
