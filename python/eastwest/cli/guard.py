"""Exit codes and error messages of commands: errors of users, of the system, and bugs."""

from __future__ import annotations

import errno
import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

import typer
from rich.console import Console

from eastwest import core
from eastwest.cli.show import problem_lines
from eastwest.errors import InputError, MechanismError, ProblemsError
from eastwest.interrupts import FinishedInterrupt
from eastwest.units import clean

P = ParamSpec("P")
R = TypeVar("R")

#: Exit code if a claim, goal, comparison or generated scenario missed its allowed values.
MISSED = 1
#: Exit code for bad input, and for errors of the system such as a full disk or a missing file.
BAD_INPUT = 2
#: Exit code for a bug of Eastwest: an error that should be impossible.
OUR_BUG = 3
#: Exit code of a command that Ctrl-C interrupted, as shells define it.
INTERRUPTED = 130


def errors() -> Console:
    """Return the console for messages: standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def fail(message: str) -> NoReturn:
    """Print a message about wrong input on standard error, and exit with code 2."""
    errors().print(f"eastwest: {clean(message, 2000)}", markup=False)
    raise typer.Exit(BAD_INPUT)


def interrupted(kept: str) -> NoReturn:
    """Print that the command was interrupted and what is stored (``kept``); exit with code 130."""
    errors().print(f"eastwest: interrupted; {kept}", markup=False)
    raise typer.Exit(INTERRUPTED) from None


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Return ``command`` with a handler that turns exceptions into messages and exit codes."""

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except FinishedInterrupt as error:
            interrupted(clean(str(error), 2000))
        except KeyboardInterrupt:
            interrupted("no result was written")
        except BrokenPipeError:
            # The reader of the pipe has ended: no more output, not even the flush at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except BaseException as error:
            if isinstance(error.__context__, BrokenPipeError):
                # The package rich turned the broken pipe into another exception.
                raise typer.Exit(0) from None
            raise typer.Exit(explain(error)) from None

    return wrapper


def explain(error: BaseException) -> int:
    """Print a message about an exception to standard error, and return the exit code."""
    console = errors()
    if isinstance(error, (core.scenario_error(), ProblemsError)):
        for line in problem_lines(getattr(error, "problems", []), str(error)):
            console.print(line)
        return BAD_INPUT
    if isinstance(error, core.run_error()):
        console.print(f"eastwest: {clean(str(error), 4000)}", markup=False)
        return BAD_INPUT
    if isinstance(error, OSError):
        console.print(f"eastwest: {_system_error(error)}", markup=False)
        return BAD_INPUT
    if isinstance(error, MechanismError) and error.trace:
        console.print(clean_lines(error.trace), markup=False)
    if isinstance(error, (InputError, MemoryError)):
        what = str(error) or "out of memory"
        console.print(f"eastwest: {clean(what, 4000)}", markup=False)
        return BAD_INPUT
    trace = "".join(traceback.format_exception(error))
    console.print(clean_lines(trace), markup=False)
    console.print(
        "eastwest: this is a bug in Eastwest, not in your scenario. Please report it with the "
        f"lines above, the scenario, and: Eastwest {core.version()}, Python "
        f"{sys.version.split()[0]}, {sys.platform}, command: {clean(' '.join(sys.argv[1:]), 500)}",
        markup=False,
    )
    return OUR_BUG


def _system_error(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"{where}the disk is full; nothing was written"
    if error.errno is None:
        return str(error)
    return f"{where}{(error.strerror or str(error)).lower()}"


def clean_lines(text: str) -> str:
    """Return a text without control characters, except for its line ends."""
    return "\n".join(clean(line, 500) for line in text.splitlines())
