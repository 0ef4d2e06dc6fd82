"""Commands and scenarios that the pages of the labs show are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

import eastwest as ew
import lab_pages
from eastwest.cli import app
from eastwest.cli.simulate import overrides
from eastwest.labs import sheet
from eastwest.run import load_source

PAGES = sorted(lab_pages.FOLDER.glob("*.md"))
#: Folder of the files that the sheets name after ``--with``.
EXAMPLES = lab_pages.ROOT / "docs" / "examples" / "mechanisms"


def shown(page: Path) -> list[list[str]]:
    """Return the commands of a page as words: lines of shell blocks, and commands in sentences."""
    text = page.read_text("utf-8")
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    lines += re.findall(r"`(eastwest run [^`\n]+)`", text)
    return [shlex.split(line) for line in lines if line.startswith("eastwest")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_on_the_pages_are_understood(page: Path) -> None:
    program = typer.main.get_command(app)
    for words in shown(page):
        command = program.get_command(None, words[1])  # type: ignore[attr-defined]
        arguments = words[2:]
        while hasattr(command, "get_command"):
            command, arguments = command.get_command(None, arguments[0]), arguments[1:]
        assert command is not None, words
        params = command.make_context(words[1], arguments).params
        if words[1] == "run":
            source = load_source(params["scenario"])
            changed = dict(overrides(source.text, params["settings"]))
            own = [EXAMPLES / name for name in params["mechanisms"] or ()]
            assert ew.check(params["scenario"], changed, mechanisms=own) == [], words


def test_a_sheet_begins_its_own_lab_and_checks_it() -> None:
    for number in sheet.numbers():
        commands = shown(lab_pages.page_of(number))
        assert ["eastwest", "lab", "start", str(number)] in commands
        assert ["eastwest", "lab", "check", str(number), f"answers-{number}.toml"] in commands
        scenario = f"{sheet.load(number).scenarios[0]}.toml"
        assert ["eastwest", "studio", scenario] in commands


@pytest.mark.parametrize("number", sheet.numbers())
def test_the_times_of_the_parts_add_up(number: int) -> None:
    text = lab_pages.page_of(number).read_text("utf-8")
    header = re.search(r"^(\d+) minutes: (\d+) to read, (.*)\.$", text, re.MULTILINE)
    assert header is not None
    parts = sum(map(int, re.findall(r"^##.*\((\d+) minutes\)$", text, re.MULTILINE)))
    rest = sum(map(int, re.findall(r"\d+", header[3])))
    assert int(header[1]) == sheet.load(number).minutes
    assert int(header[2]) + parts == int(header[2]) + rest == int(header[1])


def test_the_further_sender_of_lab_3_is_a_valid_table() -> None:
    text = lab_pages.page_of(3).read_text("utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    lines = "\n".join(line.strip() for line in block.splitlines())
    source = load_source("lab-3-dctcp").text
    assert ew.check(f"{source}\n{lines}\n") == []
