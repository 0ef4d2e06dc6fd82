"""Writes the generated parts of the documentation: the command line and the tables of results.

``python tools/reference.py`` writes docs/reference/cli.md from the commands. From the tables that
the simulator declares, it writes the tables of docs/reference/results.md and the attributes of
results (python/eastwest/result_tables.py). tests/project/test_site.py compares them. Typer can also
write a page of commands, but only as lists, and with a text that changes with its version.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

from eastwest import core
from eastwest.cli import app
from eastwest.cli.lazy import commands

Command = Callable[..., Any]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "cli.md"
RESULTS = ROOT / "docs" / "reference" / "results.md"
ATTRIBUTES = ROOT / "python" / "eastwest" / "result_tables.py"

_HEAD = """\
# Command line

*Generated from the commands (`python/eastwest/cli`). To change this page, change them and run \
`make reference`.*

Every command exits with 0 when it has done what was asked, 1 when a claim or comparison missed \
its band, 2 for bad input or an error of the machine (a full disk, a missing file), and 3 \
for a bug in Eastwest. Messages and progress go to standard error; with `--json`, standard output \
has JSON and nothing else. `--help` after any command prints its options.
"""


def page() -> str:
    """Return the text of docs/reference/cli.md."""
    return "\n".join(
        [_HEAD, *(_section(path, function) for path, function in commands(app, "eastwest"))]
    )


@dataclass(frozen=True)
class Parameter:
    """An argument or option of a command."""

    key: str
    kind: Any
    info: ArgumentInfo | OptionInfo
    default: Any

    @property
    def is_option(self) -> bool:
        """Return whether the parameter is an option, given by its name."""
        return isinstance(self.info, OptionInfo)

    @property
    def required(self) -> bool:
        """Return whether the command needs the parameter."""
        return self.default is inspect.Parameter.empty

    @property
    def name(self) -> str:
        """Return the name in the form of the command line."""
        if not self.is_option:
            return f"`{self._value()}`"
        # In an annotation, typer's `default` is the first of the option's names.
        names = [self.info.default, *(self.info.param_decls or ())]
        names = [n for n in names if isinstance(n, str)] or [f"--{self.key.replace('_', '-')}"]
        value = "" if self.kind is bool else f" {self._value()}"
        return ", ".join(f"`{name}{value}`" for name in names)

    @property
    def usage(self) -> str:
        """Return the parameter's form in the usage line."""
        return self._value() if self.required else f"[{self._value()}]"

    def _value(self) -> str:
        lists = any(get_origin(kind) is list for kind in (self.kind, *get_args(self.kind)))
        several = "…" if lists and not self.is_option else ""
        if self.info.metavar:
            return self.info.metavar.strip("[].… ") + several
        if not self.is_option:
            return self.key.upper() + several
        return {int: "N", float: "X", Path: "PATH"}.get(self._type(), "TEXT")

    def _type(self) -> type:
        kinds = (self.kind, *get_args(self.kind))
        return next((kind for kind in kinds if isinstance(kind, type)), str)

    @property
    def meaning(self) -> str:
        """Return the help text."""
        return _cell(self.info.help or "")

    @property
    def shown_default(self) -> str:
        """Return the default value as text."""
        if self.required:
            return "*required*"
        if self.default is None or self.default is False or self.default in ((), []):
            return ""
        return f"`{getattr(self.default, 'value', self.default)}`"


def parameters(function: Command) -> list[Parameter]:
    """Return the visible arguments of a command, then its visible options."""
    hints = get_type_hints(function, include_extras=True)
    found = []
    for key, parameter in inspect.signature(function).parameters.items():
        kind, *notes = get_args(hints[key]) if hasattr(hints[key], "__metadata__") else [hints[key]]
        for info in notes:
            if isinstance(info, ArgumentInfo | OptionInfo) and not info.hidden:
                found.append(Parameter(key, kind, info, parameter.default))
    return sorted(found, key=lambda parameter: parameter.is_option)


def _section(path: str, function: Command) -> str:
    shown = parameters(function)
    usage = [path, *(p.usage for p in shown if not p.is_option)]
    if any(p.is_option for p in shown):
        usage.append("[OPTIONS]")
    lines = [f"## `{path}`", "", _paragraphs(function.__doc__ or "")]
    lines += ["", "```text", " ".join(usage), "```"]
    if shown:
        lines += ["", "| | default | meaning |", "|---|---|---|"]
        lines += [f"| {_cell(p.name)} | {p.shown_default} | {p.meaning} |" for p in shown]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> str:
    """Return a docstring with one line per paragraph, without text after a form feed."""
    parts = inspect.cleandoc(text.partition("\f")[0]).split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# Lines before and after the tables in docs/reference/results.md.
_TABLES = "<!-- Tables: made from the code by `make reference`. -->\n"
# Maximum length of the first line of a docstring.
_SHORT = 85
_AFTER = "## `summary.json`\n"

_ATTRIBUTES_HEAD = '''\
"""Tables of a result as attributes: made from their declarations by ``make reference``."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


class Tables:
    """The tables of a result, read when first used.

    docs/reference/results.md has the meaning and the unit of each column.
    """

    def table(self, name: str) -> pl.DataFrame:
        """Read one table by name."""
        raise NotImplementedError
'''


def results(text: str) -> str:
    """Return docs/reference/results.md with the tables as they are declared."""
    before, rest = text.split(_TABLES)
    after = rest[rest.index(_AFTER) :]
    tables = [_table(table) for table in core.tables()]
    return before + _TABLES + "\n" + "\n".join(tables) + "\n" + after


def _table(table: core.DeclaredTable) -> str:
    lines = [f"## `{table['name']}`", "", table["about"], ""]
    lines += ["| column | type | meaning |", "|---|---|---|"]
    lines += [f"| `{c['name']}` | {c['kind']} | {_cell(c['about'])} |" for c in table["columns"]]
    return "\n".join(lines) + "\n"


def attributes() -> str:
    """Return the text of python/eastwest/result_tables.py."""
    return _ATTRIBUTES_HEAD + "".join(map(_attribute, core.tables()))


def _attribute(table: core.DeclaredTable) -> str:
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", table["about"]).replace("`", "``")
    about = re.split(r"(?<=[.:;]) ", plain)[0].rstrip(".:;")
    while len(about) > _SHORT:
        about = about.rpartition(",")[0]
    names = f"Columns: {', '.join(column['name'] for column in table['columns'])}."
    columns = textwrap.fill(names, 100, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return f'''
    @cached_property
    def {table["name"]}(self) -> pl.DataFrame:
        """{about}.

{columns}
        """
        return self.table("{table["name"]}")
'''


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    RESULTS.write_text(results(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")
    ATTRIBUTES.write_text(attributes(), encoding="utf-8")
