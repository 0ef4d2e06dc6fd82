"""The documentation site: what is generated is up to date, and text reads the same in both places.

That every page is in the navigation, and every link leads somewhere, the build in strict mode
checks (``make docs``).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import eastwest as ew
import pictures
from docs_site import ROOT, convert, outside
from reference import PAGE, page

PYTHON = ROOT / "docs" / "reference" / "python.md"


def test_the_reference_of_the_command_line_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make reference"


def test_the_reference_of_python_has_every_name() -> None:
    text = PYTHON.read_text(encoding="utf-8")
    assert [name for name in ew.__all__ if f"ew.{name}" not in text] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](../papers/x/README.md)", "[a](papers/x/index.md)"),
        ("[a](guide/errors.md#b)", "[a](guide/errors.md#b)"),
        ("[a](../README.md)", "[a](about.md)"),
        ("![a b](images/demo.png)", "![a b](images/demo.png)"),
        ("in [`crates`](../crates/sim) and [b](https://x.y)", "in `crates` and [b](https://x.y)"),
        ("`[a](../README.md)` [b](#c)", "`[a](../README.md)` [b](#c)"),
        ("```sh\n[a](../README.md)\n- b\n```", "```sh\n[a](../README.md)\n- b\n```"),
        ("text:\n- a\n- b\n  c\n- d\n1. e", "text:\n\n- a\n- b\n  c\n- d\n1. e"),
        ("text:\n1. a\n2. b", "text:\n\n1. a\n2. b"),
        ("1 − 2\nis -1\n10. x", "1 − 2\nis -1\n10. x"),
    ],
)
def test_pages_are_turned_into_those_of_the_site(text: str, expected: str) -> None:
    taken_in = {"README.md": "about.md", "papers/x/README.md": "papers/x/index.md"}
    assert convert(text, "index.md", taken_in) == expected


def test_links_from_pages_outside_docs() -> None:
    taken_in = {"CONTRIBUTING.md": "CONTRIBUTING.md", "papers/x/README.md": "papers/x/index.md"}
    text = "[a](../../docs/guide/errors.md) [b](../../CONTRIBUTING.md) [c](claims/t1.toml)"
    expected = "[a](../../guide/errors.md) [b](../../CONTRIBUTING.md) c"
    assert convert(text, "papers/x/index.md", taken_in) == expected


def test_studies_and_measurements_are_taken_in() -> None:
    addresses = outside()
    assert addresses["papers/eeon_ch5/README.md"] == "papers/eeon_ch5/index.md"
    assert addresses["CHANGELOG.md"] == "CHANGELOG.md"
    assert addresses["README.md"] == "about.md"
    assert any(name.startswith("benches/results/") for name in addresses)


def test_every_picture_has_the_commands_that_draw_it() -> None:
    listed = pictures.listed()
    there = {p.name for p in pictures.FOLDER.iterdir() if p.suffix != ".toml"}
    assert there == listed.keys()
    for name, entry in listed.items():
        assert entry["shows"], name
        assert "$OUT" in entry["commands"][-1], name


def test_every_picture_is_shown_and_described() -> None:
    shown = {}
    for page_shown in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for words, target in re.findall(r"!\[(.*?)\]\(([^)]+)\)", page_shown.read_text("utf-8")):
            shown[Path(target).name] = words
    assert pictures.listed().keys() <= shown.keys()
    assert all(shown.values()), "a picture without words for those who do not see it"


def test_a_picture_is_replaced_only_when_it_was_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    (tmp_path / "a.png").write_text("old")
    with pytest.raises(Exception, match="exit status 3"):
        pictures.draw("a.png", ["echo new > $OUT; exit 3"])
    with pytest.raises(FileNotFoundError):
        pictures.draw("a.png", ["echo new > $WORK/other"])
    assert (tmp_path / "a.png").read_text() == "old"
    pictures.draw("a.png", ["echo new > $WORK/x", "mv $WORK/x $OUT"])
    assert (tmp_path / "a.png").read_text() == "new\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
