"""Pages show the current output of their commands."""

from __future__ import annotations

from pathlib import Path

import pytest

import shown

pytestmark = pytest.mark.long


@pytest.mark.parametrize("page", shown.pages(), ids=lambda page: page.stem)
def test_shown_output_is_that_of_the_commands(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == shown.renewed(page), "run make reference"


def test_output_goes_below_its_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\necho a > f\n```\n\n```sh\ncat f\n```\n\n```text\nold\n```\nend\n")
    assert shown.renewed(page) == page.read_text().replace("old", "a")
    page.write_text("```sh\nfalse\n```\n")
    with pytest.raises(SystemExit, match="failed"):
        shown.renewed(page)
