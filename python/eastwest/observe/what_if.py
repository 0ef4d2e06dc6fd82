"""What if: the same transactions under other circumstances, run one case after the other.

A file of cases names a scenario and what each case sets in it; the first case is what the others
are compared with:

```toml
scenario = "scenario.toml"

[[case]]
name = "as it is"

[[case]]
name = "hosts at 1 Gbit/s"
set = { "fabric.host_rate" = "1 Gbit/s" }

[[case]]
name = "beside a shuffle"
scenario = "shuffle.toml"      # another scenario with the same transactions
```
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest import core
from eastwest.errors import InputError
from eastwest.results import Result
from eastwest.run import run
from eastwest.units import clean

#: The file of cases in the folder of a workload.
FILE = "what-if.toml"
MOST_CASES = 24
_MOST_BYTES = 1 << 20
_MOST_NAME = 60
_MOST_SETTINGS = 100

Setting = str | int | float | bool


@dataclass(frozen=True)
class Case:
    """One case: a scenario with settings."""

    name: str
    scenario: Path
    settings: Mapping[str, Setting]


def read_cases(path: Path) -> list[Case]:
    """Read a file of cases, or that of a folder. Raises ``InputError`` with all that is wrong."""
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise InputError(f"{path}: there is no file of cases ({FILE})")
    if file.stat().st_size > _MOST_BYTES:
        raise InputError(f"{file} is too large for a file of cases")
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {clean(str(error), 120)}") from None
    problems: list[str] = []
    _known(given, {"scenario", "case"}, "", problems)
    default = given.get("scenario")
    if default is not None and not isinstance(default, str):
        problems.append("scenario: must be the name of a file")
        default = None
    tables = given.get("case", [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        problems.append("case: must be tables, [[case]]")
        tables = []
    elif not 2 <= len(tables) <= MOST_CASES:
        problems.append(f"case: 2 to {MOST_CASES} are compared, there are {len(tables)}")
    cases = [
        _case(table, number, default, file.parent, problems) for number, table in enumerate(tables)
    ]
    names = [case.name for case in cases]
    problems += [
        f"case {clean(name, 60)!r}: is the name of two cases"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if problems:
        raise InputError("\n".join(f"{file}: {problem}" for problem in problems))
    return cases


def _case(
    table: dict[str, Any], number: int, default: str | None, folder: Path, problems: list[str]
) -> Case:
    where = f"case {number + 1}: "
    _known(table, {"name", "scenario", "set"}, where, problems)
    name, scenario = table.get("name", f"case {number + 1}"), table.get("scenario", default)
    if not isinstance(name, str) or not 0 < len(name) <= _MOST_NAME:
        problems.append(f"{where}name: must be text of 1 to {_MOST_NAME} letters")
        name = f"case {number + 1}"
    if not isinstance(scenario, str):
        problems.append(f"{where}scenario: is required, here or at the top of the file")
        scenario = ""
    elif not (folder / scenario).is_file():
        problems.append(f"{where}scenario: there is no file {clean(scenario, 80)!r} here")
    settings = table.get("set", {})
    plain = isinstance(settings, dict) and len(settings) <= _MOST_SETTINGS
    if not plain or not all(isinstance(v, str | int | float | bool) for v in settings.values()):
        problems.append(f'{where}set: must be a table of settings, {{ "fabric.mtu" = "9000 B" }}')
        settings = {}
    return Case(name, folder / scenario, settings)


def _known(table: dict[str, Any], names: set[str], where: str, problems: list[str]) -> None:
    problems += [
        f"{where}{clean(key, 40)}: there is no such key; keys are {', '.join(sorted(names))}"
        for key in table
        if key not in names
    ]


def run_cases(
    cases: list[Case],
    out: Path,
    *,
    seed: int | None = None,
    force: bool = False,
    told: Callable[[int, core.Progress], None] | None = None,
) -> list[Result]:
    """Run all cases into ``out/cases/1`` … and return their results.

    Raises ``InputError`` where a case has no finished transactions.
    """
    results = []
    for number, case in enumerate(cases, 1):

        def progress(state: core.Progress, place: int = number - 1) -> None:
            if told is not None:
                told(place, state)

        result = run(
            case.scenario,
            dict(case.settings),
            seed,
            out / "cases" / str(number),
            force=force,
            progress=progress,
        )
        check(result, case.name)
        results.append(result)
    return results


def check(result: Result, name: str) -> None:
    """Refuse a result without transactions."""
    if not result.transactions.height:
        raise InputError(
            f"case {clean(name, 60)!r}: no transaction has finished ({result.path}); "
            'they come from a workload of kind = "transactions"'
        )
