"""Groups of commands that import the module of a command when it is used.

Importing all modules takes a second. ``--help`` of a group needs names and one line each, which are
read from the source of the modules without running them.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command as click_command

#: For each command, the module below ``eastwest.cli`` and the name in it, as ``module:name``. The
#: name is that of a function, or of a group: another ``typer.Typer``.
Homes = Mapping[str, str]

#: What all groups and commands of the program have in common.
_STYLE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}


def group(help: str, homes: Homes, name: str | None = None) -> typer.Typer:
    """Return a group of the commands that have these homes."""

    class Commands(_LazyGroup):
        pass

    Commands.homes = homes
    made = typer.Typer(name=name, help=help, cls=Commands, no_args_is_help=True, **_STYLE)
    made.callback()(lambda: None)  # without a callback or command typer makes no group
    return made


def commands(app: typer.Typer, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Import all commands of a group and yield them with the words that call them, groups last."""
    homes = cast(_LazyGroup, click_command(app)).homes
    found = {name: _load(home) for name, home in homes.items()}
    for name, command in found.items():
        if not isinstance(command, typer.Typer):
            yield f"{path} {name}", command
    for name, command in found.items():
        if isinstance(command, typer.Typer):
            yield from commands(command, f"{path} {name}")


class _LazyGroup(TyperGroup):
    """A group that knows the homes of its commands, and makes a command when it is asked for."""

    homes: ClassVar[Homes] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order in which help shows them."""
        return list(self.homes)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, if there is one."""
        if cmd_name not in self.homes:
            return None
        if self.commands.get(cmd_name) is None:
            self.commands[cmd_name] = _command(cmd_name, _load(self.homes[cmd_name]))
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments name; an unknown one is told from its near names."""
        # the search for near names looks at the keys of `commands` only
        for name in self.homes:
            self.commands.setdefault(name, cast(Any, None))
        try:
            return super().resolve_command(ctx, args)
        finally:
            for name in [name for name, command in self.commands.items() if command is None]:
                del self.commands[name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the names of the commands with the first line of their help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_line(home)) for name, home in self.homes.items()])


def _command(name: str, home: Callable[..., Any] | typer.Typer) -> Any:
    """Return a command of the library below typer, for a function or a group."""
    if isinstance(home, typer.Typer):
        made = click_command(home)
    else:
        alone = typer.Typer(**_STYLE)
        alone.command(name)(home)
        made = click_command(alone)
    made.name = name
    return made


def _load(home: str) -> Any:
    """Import a command or group from its home."""
    module, _, name = home.partition(":")
    return getattr(importlib.import_module(f"eastwest.cli.{module}"), name)


@cache
def first_line(home: str) -> str:
    """Return the first line of the help of a command or group, without importing its module."""
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
            return texts[0]
    return _load(home).__doc__ or ""


@cache
def _body(module: str) -> list[ast.stmt]:
    """Parse the source of a module."""
    spec = importlib.util.find_spec(module)
    source = cast(Any, spec.loader).get_source(module) if spec and spec.loader else None
    return ast.parse(source or "").body
