"""Options of commands that draw: style and width of a picture, LaTeX, and its numbers as CSV."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar, get_type_hints

import typer

from eastwest.cli.guard import fail

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

_StyleOption = Annotated[
    str,
    typer.Option(
        "--style",
        metavar="NAME",
        help="Style of the picture: screen, or one-column or two-columns of a paper.",
    ),
]
_WidthOption = Annotated[
    str,
    typer.Option(
        "--width",
        metavar="NAME|INCHES",
        help="Width of the picture in a paper: of columns of ieee, acm or usenix, or in inches.",
    ),
]
_LatexOption = Annotated[
    bool, typer.Option("--latex", help="Set the text of the picture in a paper with LaTeX.")
]
_NumbersOption = Annotated[
    bool,
    typer.Option("--numbers", help="Write the numbers of the picture beside it, as NAME.csv."),
]


@dataclass(frozen=True)
class _Wanted:
    """Values of the options of pictures."""

    style: str = "screen"
    width: str = "ieee"
    latex: bool = False
    numbers: bool = False


_PLAIN = _Wanted()
_WANTED: ContextVar[_Wanted] = ContextVar("wanted", default=_PLAIN)
_OPTIONS = {
    "style": _StyleOption,
    "width": _WidthOption,
    "latex": _LatexOption,
    "numbers": _NumbersOption,
}


def pictured(*options: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that adds the options of pictures to a command.

    ``options`` are the arguments of the command that name the file of a picture. Without such a
    file, the command exits with a message if an option of pictures is used. The decorated command
    draws with `draw`.
    """

    def decorate(command: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(command)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            wanted = _Wanted(**{name: kwargs.pop(name) for name in _OPTIONS})  # type: ignore[arg-type]
            given = [kwargs[name] for name in options if kwargs.get(name) is not None]
            if wanted != _PLAIN and options and not given:
                names = " or ".join(f"--{name}" for name in options)
                fail(f"--style, --width, --latex and --numbers are for a picture: add {names}")
            if wanted.style == _PLAIN.style and wanted.width != _PLAIN.width:
                fail(f"--width {wanted.width}: add --style one-column or --style two-columns")
            if wanted.numbers:
                _check_names([Path(str(path)).with_suffix(".csv") for path in given], kwargs)
            token = _WANTED.set(wanted)
            try:
                if wanted != _PLAIN:
                    with styled():
                        pass  # a wrong option is an error before the command computes
                return command(*args, **kwargs)
            finally:
                _WANTED.reset(token)

        # typer reads the options of a command from its signature and annotations.
        signature = inspect.signature(command)
        kind, plain = inspect.Parameter.KEYWORD_ONLY, vars(_PLAIN)
        added = [
            inspect.Parameter(name, kind, default=plain[name], annotation=option)
            for name, option in _OPTIONS.items()
        ]
        hints = get_type_hints(command, include_extras=True)
        own = [
            each.replace(kind=kind, annotation=hints[name])
            for name, each in signature.parameters.items()
        ]
        wrapper.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        wrapper.__annotations__ = {**hints, **_OPTIONS}
        return wrapper

    return decorate


def _check_names(beside: list[Path], arguments: Mapping[str, object]) -> None:
    """Exit with a message if two of the CSV files of a command have one name.

    ``beside`` are the files for the numbers of the pictures.
    """
    table = arguments.get("csv_file")
    named = [*beside, *([table] if isinstance(table, Path) else [])]
    for number, path in enumerate(named):
        if any(path.resolve() == other.resolve() for other in named[:number]):
            fail(f"{path} would be written twice, for --numbers and another option: rename one")


@contextmanager
def styled() -> Iterator[None]:
    """Within a ``with`` block, draw in the style of the options of the command."""
    from eastwest.plot import style  # noqa: PLC0415  slow to load

    wanted = _WANTED.get()
    try:
        width: str | float = float(wanted.width)
    except ValueError:
        width = wanted.width
    with style(wanted.style, width=width, latex=wanted.latex):
        yield


def draw(figure: Callable[[], Figure], path: Path, numbers: Path | None = None) -> None:
    """Draw a figure and write it to ``path``, as the options of the command say.

    ``figure`` draws it. ``numbers`` is the file for its numbers; default: beside ``path``, with the
    ending ``.csv``.
    """
    from eastwest.plot.picture import check, save  # noqa: PLC0415  slow to load

    check(path)
    with styled():
        drawn = figure()
    save(drawn, path, csv=_WANTED.get().numbers and (numbers or True))
