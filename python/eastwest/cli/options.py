"""Options that several commands share, so that their spelling and help text are equal."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from eastwest import core
from eastwest.cli import completion
from eastwest.cli.guard import fail
from eastwest.errors import did_you_mean

if TYPE_CHECKING:
    from eastwest.mechanisms.load import Recipe

Choice = TypeVar("Choice", bound=StrEnum)

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change one setting of the scenario; may be repeated.",
        autocompletion=completion.settings,
    ),
]
WithOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="FOLDER|FILE.py",
        help="Your own mechanism in Rust or Python, which the scenario names; may be repeated.",
    ),
]
ReleaseOption = Annotated[
    bool,
    typer.Option(
        "--with-release",
        help="Compile the Rust crate of --with with full optimisation: a longer build, faster "
        "runs.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        min=0, help="Number of processes; default: one for each core. 0: run in this process."
    ),
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on the workers of this Dask scheduler (tcp://HOST:8786), not on this machine.",
    ),
]
StoreOption = Annotated[
    Path | None,
    typer.Option(help="Folder of the run store; default: $EASTWEST_STORE or .eastwest/store."),
]
RetryOption = Annotated[bool, typer.Option("--retry", help="Repeat stored runs that failed.")]
JsonObjectOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]
JsonArrayOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON array and nothing else.")
]


def use_mechanisms(
    given: list[str] | None, release: bool = False, *, complete: bool = False
) -> Recipe | None:
    """Load the mechanisms of ``--with`` for the rest of this process; return their recipe.

    Another process can load the mechanisms from the recipe. The recipe is None without mechanisms.
    ``release`` compiles a crate with full optimisation (``--with-release``). With ``complete``, the
    compiled crate can also be used by ``eastwest fuzz``.
    """
    if not given:
        if release:
            fail("--with-release needs --with: it compiles the crate that --with names")
        return None
    from eastwest.mechanisms.load import load  # noqa: PLC0415  few runs have mechanisms

    wanted, recipe = load(given, show=True, release=release, complete=complete)
    core.use(wanted)
    return recipe


def one_of(choices: type[Choice], given: str, where: str) -> Choice:
    """Return the member of ``choices`` with the name ``given``.

    For another name, exits with a message that begins with ``where`` and has the allowed names.
    """
    names = [choice.value for choice in choices]
    if given not in names:
        hint = did_you_mean(given, names)
        fail(f"{where} {given!r:.60}: expected {', '.join(names[:-1])} or {names[-1]}{hint}")
    return choices(given)
