"""Layers of the package: results ← views ← pictures, pages, explanations, timelines, commands."""

from __future__ import annotations

import ast

import pytest

from project_paths import ROOT

PACKAGE = ROOT / "python" / "eastwest"
#: Modules that draw, write pages or talk to a user; views may not import them.
ABOVE_VIEWS = ("plot", "report", "explain", "timeline", "paraver", "cards", "studio", "cli")


def imported(text: str) -> set[str]:
    """Return the full names of modules and names that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imports_of(package: str) -> dict[str, set[str]]:
    """Return the imports of every module of a package, or of a single module, by its path."""
    single = PACKAGE / f"{package}.py"
    paths = [single] if single.is_file() else sorted((PACKAGE / package).rglob("*.py"))
    assert paths, package
    return {
        str(path.relative_to(PACKAGE)): imported(path.read_text(encoding="utf-8")) for path in paths
    }


def below(name: str, modules: tuple[str, ...]) -> bool:
    """Return whether a name is one of these modules of the package, or in one of them."""
    return any(f"{name}.".startswith(f"eastwest.{module}.") for module in modules)


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [
        ("views", ABOVE_VIEWS),
        ("plot", ("report", "explain", "timeline", "paraver", "studio", "cli")),
        ("explain", ("plot", "report", "timeline", "paraver", "studio", "cli")),
        ("timeline", ("plot", "report", "explain", "paraver", "studio", "cli")),
        ("paraver", ("plot", "report", "explain", "studio", "cli")),
        ("cards", ("plot", "report", "timeline", "paraver", "studio", "cli")),
        ("notes", (*ABOVE_VIEWS, "views")),
        ("progress", ABOVE_VIEWS),
        ("notebook", ABOVE_VIEWS),
        ("studio", ("timeline", "paraver", "cli")),
        ("report", ("plot", "explain", "timeline", "paraver", "studio", "cli")),
        ("bundle", ("explain", "timeline", "paraver", "cards", "cli")),
    ],
)
def test_no_layer_imports_one_beside_or_above_it(package: str, forbidden: tuple[str, ...]) -> None:
    for module, names in imports_of(package).items():
        assert [name for name in names if below(name, forbidden)] == [], module


def test_views_draw_nothing() -> None:
    for module, names in imports_of("views").items():
        assert not [name for name in names if name.split(".")[0] in {"matplotlib", "jinja2"}], (
            module
        )


def test_an_import_is_found_wherever_it_stands() -> None:
    text = "import eastwest.plot\ndef f():\n    from eastwest.report.page import render"
    assert imported(text) == {"eastwest.plot", "eastwest.report.page.render"}
    assert below("eastwest.plot", ("plot",))
    assert below("eastwest.report.page.render", ("report",))
    assert not below("eastwest.plots.x", ("plot",))
