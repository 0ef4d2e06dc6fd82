"""What-if comparison: the same transactions in other scenarios, each case with one or more seeds.

A file of cases names a scenario and the settings of each case; the first case is the reference of
the comparison:

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

Cases run like sweeps of one point, on several cores or on a cluster. Results are stored in the run
store; a run whose result is there, from whatever command, is not repeated.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest import core, shipped
from eastwest.errors import InputError, ProblemsError
from eastwest.partial import Partial
from eastwest.results import Result
from eastwest.run import load_source
from eastwest.store import Store
from eastwest.sweep import State, prepare
from eastwest.sweep.check import load
from eastwest.units import clean

#: Default name of the file of cases in a folder of a workload.
FILE = "what-if.toml"
MOST_CASES = 24
#: Maximum number of seeds of a case. It limits memory, which holds the transactions of all seeds.
MOST_SEEDS = 100
_MOST_BYTES = 1 << 20
_MOST_NAME = 60
_MOST_SETTINGS = 100

Setting = str | int | float | bool


@dataclass(frozen=True)
class Case:
    """Case of a comparison: its name, a scenario file, and settings to change in the scenario."""

    name: str
    scenario: Path
    settings: Mapping[str, Setting]


def read_cases(path: Path) -> list[Case]:
    """Return the cases in a file, or in the file ``what-if.toml`` of a folder.

    Raises ``InputError`` with all errors in the file.
    """
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise InputError(f"{path}: there is no file of cases; its default name is {FILE}")
    if file.stat().st_size > _MOST_BYTES:
        raise InputError(
            f"{file}: is larger than {_MOST_BYTES:,} bytes, the limit for a file of cases"
        )
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: is not valid TOML: {clean(str(error), 120)}") from None
    problems: list[str] = []
    _known(given, {"scenario", "case"}, "", problems)
    default = given.get("scenario")
    if default is not None and not isinstance(default, str):
        problems.append("scenario: must be the name of a scenario file, as a text")
        default = None
    tables = given.get("case", [])
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        problems.append("case: must be given as tables [[case]]")
        tables = []
    elif not 2 <= len(tables) <= MOST_CASES:
        problems.append(
            f"case: {len(tables)} cases are given, but a comparison needs 2 to {MOST_CASES}"
        )
    cases = [
        _case(table, number, default, file.parent, problems) for number, table in enumerate(tables)
    ]
    names = [case.name for case in cases]
    problems += [
        f"case {clean(name, 60)!r}: two cases have this name"
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
        problems.append(f"{where}name: must be a text of 1 to {_MOST_NAME} characters")
        name = f"case {number + 1}"
    if not isinstance(scenario, str):
        problems.append(
            f"{where}scenario: is missing: give it in the case or at the top of the file"
        )
        scenario = ""
    elif not (folder / scenario).is_file():
        problems.append(
            f"{where}scenario: the file {clean(scenario, 80)!r} does not exist in the "
            "folder of the file of cases"
        )
    settings = table.get("set", {})
    plain = isinstance(settings, dict) and len(settings) <= _MOST_SETTINGS
    if not plain or not all(isinstance(v, str | int | float | bool) for v in settings.values()):
        problems.append(
            f"{where}set: must be a table of at most {_MOST_SETTINGS} settings, such as "
            '{ "fabric.mtu" = "9000 B" }'
        )
        settings = {}
    return Case(name, folder / scenario, settings)


def _known(table: dict[str, Any], names: set[str], where: str, problems: list[str]) -> None:
    problems += [
        f"{where}{clean(key, 40)}: there is no such key; allowed: {', '.join(sorted(names))}"
        for key in table
        if key not in names
    ]


@dataclass(frozen=True)
class Runs:
    """Settings for the runs of all cases: seeds, processes or cluster, and run store."""

    #: Number of seeds of each case.
    seeds: int = 1
    #: First seed; further seeds are the next numbers. None: the seed of the first case's scenario.
    first_seed: int | None = None
    #: Number of processes on this machine; None: one for each core that Eastwest may use.
    jobs: int | None = None
    #: Address of a Dask scheduler that runs the cases; None: they run on this machine.
    dask: str | None = None
    #: Folder of the run store; None: the default store.
    store: str | Path | None = None
    #: Whether runs that failed before are run again.
    retry: bool = False


def run_cases(
    cases: Sequence[Case],
    runs: Runs,
    *,
    told: Callable[[int, State], None] = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> list[list[Result]]:
    """Run all cases; return for each case the list of its results, in the order of the seeds.

    All cases have the same seeds. Results are stored in the run store; runs that it contains are
    not repeated. ``told`` is called with the number of a case, from 0, and the state of its runs;
    ``say`` with messages. Raises ``InputError`` if a run fails or has no finished transactions.
    """
    if not 1 <= runs.seeds <= MOST_SEEDS:
        raise InputError(f"seeds: must be from 1 to {MOST_SEEDS}, not {runs.seeds}")
    first = _own_seed(cases[0]) if runs.first_seed is None else runs.first_seed
    numbers = list(range(first, first + runs.seeds))
    found = []
    # A sweep also writes a folder with tables of all metrics, which is not needed: it goes to a
    # temporary folder.
    with Partial.scratch() as scratch:
        for place, case in enumerate(cases):

            def progress(state: State, place: int = place) -> None:
                told(place, state)

            try:
                spec = load(_sweep_of(case, numbers))
                out = scratch.path / str(place)
                driver = prepare(
                    spec,
                    out,
                    jobs=runs.jobs,
                    dask=runs.dask,
                    store=Store(runs.store).path,
                    retry=runs.retry,
                    confirm=lambda _: True,
                    progress=progress,
                    say=say,
                )
            except ProblemsError as error:
                where = f"case {clean(case.name, _MOST_NAME)!r}: "
                raise ProblemsError(
                    [{**one, "path": f"{where}{one['path']}"} for one in error.problems]
                ) from None
            swept = driver.run(out)
            for failure in swept.failures:
                raise InputError(
                    f"case {clean(case.name, _MOST_NAME)!r}, seed {failure['seed']}: "
                    f"{clean(str(failure['message']), 1000)}"
                )
            found.append([swept.run(0, number) for number in numbers])
            for result in found[-1]:
                check(result, case.name)
    return found


def _sweep_of(case: Case, seeds: list[int]) -> dict[str, Any]:
    """Return the specification of a sweep with a single point: a case with the given seeds."""
    return {
        "name": case.name,
        "scenario": str(case.scenario.resolve()),
        "set": dict(case.settings),
        "seeds": seeds,
        "keep": "tables",
    }


def _own_seed(case: Case) -> int:
    """Return the seed in a case's scenario, or the default seed if it states none."""
    source = load_source(case.scenario)
    resolved = core.resolve(source.text, str(source.base_dir), str(shipped.DATA), [], None)
    return int(tomllib.loads(resolved["scenario_toml"]).get("seed", 1))


def check(result: Result, name: str) -> None:
    """Raise ``InputError`` if no transaction of a run has finished; ``name`` is the run's case."""
    if not result.transactions.height:
        raise InputError(
            f"case {clean(name, 60)!r}: no transaction has finished ({result.path}); "
            'transactions come from a workload of kind = "transactions"'
        )
