"""Groups of commands that import the module of a command only when the command is used.

The import of all modules takes 1 s. ``--help`` of a group needs the name and one line of each
command; the line is read from the source code of the module, which is not imported.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command as click_command

from eastwest.errors import nearest

#: ``module:name`` of each command: a module of ``eastwest.cli``, and the name of a function in it,
#: or of a group of commands (another ``typer.Typer``).
Homes = Mapping[str, str]

#: Commands of a group by the heading under which its help lists them.
Sections = Mapping[str, Homes]

#: Settings of all groups and commands of the program.
_STYLE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


def group(
    help: str,
    commands: Homes | Sections,
    name: str | None = None,
    is_program: bool = False,
    default: str | None = None,
) -> typer.Typer:
    """Return a group of commands whose modules are imported when a command is used.

    ``help`` is the help text of the group. ``is_program``: the group is the whole program, with
    ``--version`` and completion for shells. ``default`` is the command of the group that is used
    where the first argument is no name of a command.
    """

    class Commands(_LazyGroup):
        pass

    if any(isinstance(home, str) for home in commands.values()):
        commands = {"Commands": cast(Homes, commands)}
    Commands.sections = cast(Sections, commands)
    Commands.default = default
    style = _STYLE | {"add_completion": is_program}
    made = typer.Typer(name=name, help=help, cls=Commands, no_args_is_help=True, **style)
    # typer does not make a group without a callback or command.
    made.callback()(_program if is_program else lambda: None)
    return made


def _print_version(is_asked: bool) -> None:
    """Print the version and end the program, if ``--version`` is given."""
    if is_asked:
        _load("explore:print_version")()
        raise typer.Exit


def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and the options of its build.",
        ),
    ] = False,
) -> None:
    """Do nothing: the option ``--version`` has its own callback."""


def commands(app: typer.Typer, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield (path, function) of all commands of a group, after importing their modules.

    ``path`` is the path of the group, such as ``eastwest trace``. Commands of inner groups are
    last.
    """
    homes = cast(_LazyGroup, click_command(app)).homes()
    found = {name: _load(home) for name, home in homes.items()}
    for name, command in found.items():
        if not isinstance(command, typer.Typer):
            yield f"{path} {name}", command
    for name, command in found.items():
        if isinstance(command, typer.Typer):
            yield from commands(command, f"{path} {name}")


class _Command(TyperCommand):
    """A command that refuses nan for every number, and inf for most numbers.

    The range of an option does not exclude nan, because nan is neither below nor above a number.
    An option may be infinite if its help explains ``inf``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the command line; raise an error for nan, and for inf if wrong."""
        rest = super().parse_args(ctx, args)
        for param in self.params:
            value = ctx.params.get(param.name)
            allowed = "inf:" in (getattr(param, "help", None) or "")
            for each in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(each, float) and not math.isfinite(each):
                    if allowed and not math.isnan(each):
                        continue
                    message = f"{each} is not a finite number."
                    raise typer.BadParameter(message, ctx=ctx, param=param)
        return rest


class _LazyGroup(TyperGroup):
    """A group of commands that imports the module of a command when the command is used."""

    sections: ClassVar[Sections] = {}
    #: Command that is used where the first argument is no name of a command; None: there is none.
    default: ClassVar[str | None] = None

    @classmethod
    def homes(cls) -> Homes:
        """Return ``module:name`` of each command of all sections, by the command's name."""
        return {name: home for homes in cls.sections.values() for name, home in homes.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return list(self.homes())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return the command or group of this name; None if there is none."""
        home = self.homes().get(cmd_name)
        if home is None:
            return None
        if self.commands.get(cmd_name) is None:
            self.commands[cmd_name] = _command(cmd_name, _load(home))
        return self.commands[cmd_name]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the group; insert the name of the default command if none is given.

        A word that is similar to the name of a command, and is no file, is a misspelled name.
        """
        if self.default is not None and args and args[0] not in {*self.homes(), "--help"}:
            misspelled = nearest(args[0], self.homes()) and not Path(args[0]).exists()
            args = args if misspelled else [self.default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name; an error has similar names of commands."""
        # The search for similar names reads only the keys of `commands`.
        for name in self.homes():
            self.commands.setdefault(name, cast(Any, None))
        try:
            return super().resolve_command(ctx, args)
        finally:
            for name in [name for name, command in self.commands.items() if command is None]:
                del self.commands[name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names of the commands with the first line of their help, by section."""
        for section, homes in self.sections.items():
            with formatter.section(section):
                formatter.write_dl([(name, first_line(home)) for name, home in homes.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return completions for a shell, without importing the modules of the commands."""
        for name, home in self.homes().items():
            self.commands.setdefault(name, _command(name, _with_help(first_line(home))))
        found = super().shell_complete(ctx, incomplete)
        if self.default is not None:
            named = _command(self.default, _load(self.homes()[self.default]))
            found += named.params[0].shell_complete(ctx, incomplete)
        return found


def _with_help(line: str) -> Callable[[], None]:
    """Return a function that does nothing and has the help text ``line``."""

    def command() -> None:
        pass

    command.__doc__ = line
    return command


def _command(name: str, home: Callable[..., Any] | typer.Typer) -> Any:
    """Return the command of click (the library below typer) for a function or a group."""
    if isinstance(home, typer.Typer):
        made = click_command(home)
    else:
        alone = typer.Typer(**_STYLE)
        alone.command(name, cls=_Command)(home)
        made = click_command(alone)
    made.name = name
    return made


def _load(home: str) -> Any:
    """Import the command or group ``module:name``, and return it."""
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(f"eastwest.cli.{module}"), name)


@cache
def first_line(home: str) -> str:
    """Return the first line of the help of ``module:name``, without importing the module."""
    module, _, name = home.partition(":")
    for node in _body(f"eastwest.cli.{module}"):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [name]:
            call = node.value
            texts = [
                argument.value
                for argument in ast.walk(call)
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            ]
            return texts[0].partition("\n")[0]
    return _load(home).__doc__ or ""


@cache
def _body(module: str) -> list[ast.stmt]:
    """Return the statements of a module, parsed from its source code."""
    spec = importlib.util.find_spec(module)
    source = cast(Any, spec.loader).get_source(module) if spec and spec.loader else None
    return ast.parse(source or "").body
