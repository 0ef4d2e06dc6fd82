"""Modules are imported when they are first used, so that help is quick."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

import eastwest
from eastwest.cli import app
from eastwest.cli.lazy import commands, first_line
from eastwest.cli.model import control
from eastwest.cli.observe import app as observe

#: Libraries that take long to import.
HEAVY = ("polars", "numpy", "matplotlib", "scipy", "networkx")


#: Modules without which ``eastwest run`` simulates, writes and prints a small run.
NOT_IN_A_RUN = (
    *(name for name in HEAVY if name != "polars"),
    "asyncio",
    "jinja2",
    "rich.progress",
    "eastwest.account",
    "eastwest.mechanisms",
    "eastwest.observe",
    "eastwest.sweep",
    "eastwest.traces",
)


def imported(code: str, among: Sequence[str] = HEAVY) -> set[str]:
    """Run code in a new process and return which of the modules ``among`` it has imported."""
    watch = f"import sys\n{code}\nprint(*[m for m in {among!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def commanded(words: Sequence[str]) -> str:
    """Return Python code that runs the command ``eastwest`` with these words."""
    return (
        f"sys.argv = ['eastwest', *{words!r}]\n"
        "import contextlib\nfrom eastwest.cli import main\n"
        "with contextlib.suppress(SystemExit):\n    main()"
    )


@pytest.mark.parametrize("words", [[], ["observe"], ["model", "control"], ["run"], ["version"]])
def test_help_imports_no_large_library(words: list[str]) -> None:
    assert imported(commanded([*words, "--help"])) == set()


def test_a_small_run_imports_only_what_it_needs(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert imported(commanded(["run", "first", "--out", str(out)]), NOT_IN_A_RUN) == set()
    assert (out / "summary.json").is_file()


def test_the_package_imports_nothing_before_it_is_used() -> None:
    assert imported("import eastwest") == set()
    assert "polars" in imported("import eastwest; eastwest.models.incast; import polars")


def test_every_public_name_is_there_and_is_no_module_by_mistake() -> None:
    for name in eastwest.__all__:
        value = getattr(eastwest, name)
        assert (type(value).__name__ == "module") == (name in {"models", "plot"}), name
    assert dir(eastwest) == sorted(eastwest.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = eastwest.nonsense


def test_importing_a_module_does_not_hide_the_function_of_its_name() -> None:
    code = "import eastwest.sweep.spec, eastwest.claims.page\n" + (
        "import eastwest as ew\nassert callable(ew.sweep) and callable(ew.claims)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_shows_the_first_line_of_every_command() -> None:
    found = dict(commands(app, "eastwest"))
    assert len(found) > 30
    for group, path in ((app, "eastwest"), (observe, "eastwest observe")):
        shown = " ".join(CliRunner().invoke(group, ["--help"]).output.split())
        direct = {p: f for p, f in found.items() if p.rpartition(" ")[0] == path}
        assert direct
        for words, function in direct.items():
            line = (function.__doc__ or "").strip().partition("\n")[0]
            assert line, words
            assert " ".join(line.split()) in shown, words


def test_a_group_says_what_it_is_for() -> None:
    assert first_line("model:control").startswith("Control loops")
    assert "horizon" in CliRunner().invoke(control, []).output


def test_an_unknown_command_is_told_from_its_near_name() -> None:
    result = CliRunner().invoke(app, ["modle"])
    assert result.exit_code == 2
    assert "Did you mean 'model'?" in result.output
