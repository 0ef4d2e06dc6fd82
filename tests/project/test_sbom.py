"""The bills of materials name everything that is shipped or needed, with permissive licences."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

import sbom
from project_paths import ROOT

PERMISSIVE = {
    "0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT",
    "MIT-CMU", "PSF-2.0", "Unicode-3.0", "Unlicense", "Zlib",
    "Apache-2.0 WITH LLVM-exception",
}  # fmt: skip
#: Packages that are installed beside Eastwest and not in the wheel: their licence obliges only
#: those who change their files.
NOT_IN_THE_WHEEL = {"orjson": {"MPL-2.0"}}


def permitted(expression: str, licences: set[str]) -> bool:
    """Return whether an SPDX expression is satisfied by these licences.

    One side of an OR is enough.
    """
    text = expression.strip()
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1].strip()
    for word, combine in ((" AND ", all), (" OR ", any)):
        parts = list(_split(text, word))
        if len(parts) > 1:
            return combine(permitted(part, licences) for part in parts)
    return text in licences


def _closing(text: str) -> int:
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return place
    return -1


def _split(text: str, word: str) -> Iterator[str]:
    """Yield the parts of a text between a word that is outside parentheses."""
    begin = depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and text.startswith(word, place):
            yield text[begin:place]
            begin = place + len(word)
    yield text[begin:]


def expression(component: dict[str, Any]) -> str:
    (found,) = component["licenses"]
    return str(found.get("expression") or found["license"].get("id") or found["license"]["name"])


def crates() -> list[dict[str, Any]]:
    """Return the components of the bill that maturin put beside the installed package."""
    files = [f for f in distribution("eastwest").files or [] if f.match("sboms/*.cyclonedx.json")]
    (path,) = [file.locate() for file in files if "extension" in file.name]
    return list(json.loads(Path(str(path)).read_text("utf-8"))["components"])


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("GPL-3.0 OR MIT", True),
        ("GPL-3.0 AND MIT", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("(MIT OR Apache-2.0) AND (GPL-2.0 OR LGPL-2.1)", False),
        ("Apache-2.0 WITH LLVM-exception", True),
    ],
)
def test_what_is_permissive(text: str, holds: bool) -> None:
    assert permitted(text, PERMISSIVE) == holds


def test_every_crate_that_is_compiled_in_is_listed(tool: Callable[..., str]) -> None:
    lines = subprocess.run(
        [tool("cargo"), "tree", "--locked", "--offline", "-p", "eastwest-extension", "-e",
         "normal", "--target", "all", "--prefix", "none", "--format", "{p}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    built = {tuple(re.split(r" v| ", line)[:2]) for line in lines if line}
    built = {(name, version) for name, version in built if name != "eastwest-extension"}
    assert len(built) > 20
    there = {(each["name"], each["version"]) for each in crates()}
    assert built <= there, "run `make build`: Cargo.lock has changed since"


def test_every_crate_has_a_permissive_licence() -> None:
    for each in crates():
        assert permitted(expression(each), PERMISSIVE), each["name"]


def test_every_package_that_is_needed_has_a_permissive_licence() -> None:
    found = {each["name"]: each for each in sbom.bill()["components"]}
    assert {"numpy", "polars", "typer", "markupsafe"} <= found.keys(), "direct ones, and theirs"
    assert not {"pytest", "distributed", "eastwest"} & found.keys()
    for name, each in found.items():
        assert permitted(expression(each), PERMISSIVE | NOT_IN_THE_WHEEL.get(name, set())), name
        assert each["version"] == distribution(name).version
