"""Writes the questions into the sheets of the labs, and the right answers into the solutions.

    python tools/lab_pages.py

The questions are declared in python/eastwest/labs/data. A sheet in docs/labs has the marks
``<!-- question q1 -->`` and ``<!-- end -->``; the solutions have ``<!-- right 1 q1 -->``. This tool
writes the text between the marks. A test checks that the pages are current.
"""

from __future__ import annotations

import re
from pathlib import Path

from eastwest.labs import sheet

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "labs"
SOLUTIONS = FOLDER / "solutions.md"
_QUESTION = re.compile(r"<!-- question (?P<id>q\d+) -->\n.*?<!-- end -->", re.S)
_RIGHT = re.compile(r"<!-- right (?P<lab>\d+) (?P<id>q\d+) -->\n.*?<!-- end -->", re.S)


def page_of(number: int) -> Path:
    """Return the path of the sheet of a lab."""
    (page,) = FOLDER.glob(f"{number}-*.md")
    return page


def renewed(page: Path) -> str:
    """Return the text of a sheet, or of the solutions, with the declared questions and answers."""
    text = page.read_text("utf-8")
    if page == SOLUTIONS:
        return _RIGHT.sub(
            lambda found: (
                f"<!-- right {found['lab']} {found['id']} -->\n"
                f"{_right(_find(int(found['lab']), found['id']))}\n<!-- end -->"
            ),
            text,
        )
    number = int(page.stem.partition("-")[0])
    return _QUESTION.sub(
        lambda found: (
            f"<!-- question {found['id']} -->\n{_shown(_find(number, found['id']))}\n<!-- end -->"
        ),
        text,
    )


def asked(page: Path) -> list[str]:
    """Return the ids of the questions on a sheet in their order."""
    return [found["id"] for found in _QUESTION.finditer(page.read_text("utf-8"))]


def _find(number: int, id: str) -> sheet.Question:
    return next(each for each in sheet.load(number).questions if each.id == id)


def _shown(question: sheet.Question) -> str:
    """Return a question in Markdown: kind, text, choices, form of the answer, folded hint."""
    lines = [f"**{question.id}** ({question.kind}). {question.text}", ""]
    if question.choices:
        lines += [*(f"- {letter}: {text}" for letter, text in question.choices.items()), ""]
    lines += [f"*Answer: {question.expected}.*", ""]
    if question.hint:
        lines += [
            '<details markdown="1"><summary>Hint</summary>',
            "",
            question.hint,
            "",
            "</details>",
            "",
        ]
    return "\n".join(lines)


def _right(question: sheet.Question) -> str:
    """Return the right answers to a question in Markdown."""
    if question.kind is sheet.Kind.text:
        return f"**{question.id}** (not graded)."
    if question.kind is sheet.Kind.choice:
        return f"**{question.id}**: {question.right} ({question.choices[question.right]})."
    assert question.band is not None
    band = f"{question.band.low.given} to {question.band.high.given}"
    if question.trial is None:
        return f"**{question.id}**: right from {band}."
    goals = " and ".join(f"`{measure}` {limit}" for measure, limit in question.trial.goal.items())
    seeds = ", ".join(map(str, question.trial.seeds))
    return (
        f"**{question.id}**: right is every value of `{question.trial.setting}` from {band} with "
        f"which {goals}, with the seeds {seeds}."
    )


def main() -> None:
    """Update all sheets and the solutions."""
    for page in [*map(page_of, sheet.numbers()), SOLUTIONS]:
        page.write_text(renewed(page), "utf-8")


if __name__ == "__main__":
    main()
