"""Public names of the package: few, and each documented."""

from __future__ import annotations

import importlib
import re
from types import ModuleType

import pytest

import eastwest as ew
from project_paths import ROOT

PAGES = [
    ROOT / "docs" / "guide" / "python.md",
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
]
#: Modules that users import by name; they need not be attributes of the package.
MODULES = ("eastwest.observe", "eastwest.traces", "eastwest.models", "eastwest.plot")


def documented() -> set[str]:
    """Return the names ``X`` that the pages write as ``ew.X``."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    return set(re.findall(r"\bew\.(\w+)", text))


def test_the_names_are_those_of_all_and_documented() -> None:
    names = dir(ew)
    assert names == sorted(ew.__all__)
    assert [name for name in names if name.startswith("_")] == ["__version__"]
    assert set(names) <= documented(), "describe new names in docs/reference/python.md"
    assert all(getattr(ew, name) is not None for name in names)


def test_names_of_the_pages_are_there() -> None:
    assert documented() <= set(dir(ew))


def test_helpers_of_the_package_are_no_public_names() -> None:
    importlib.import_module("eastwest.units")
    assert not {"importlib", "sys", "ModuleType", "Any", "annotations", "units"} & set(dir(ew))


def test_functions_of_pictures_are_in_the_guide() -> None:
    guide = PAGES[0].read_text(encoding="utf-8")
    drawn = [
        name
        for name in ew.plot.__all__
        if name != "draw" and callable(getattr(ew.plot, name)) and name.islower()
    ]
    assert {"sweep", "comparisons", "cdf"} <= set(drawn)
    assert [name for name in drawn if f"`ew.plot.{name}(" not in guide] == []


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_imported_by_name(module: str) -> None:
    assert isinstance(importlib.import_module(module), ModuleType)
