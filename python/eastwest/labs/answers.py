"""Answers of a student: the file that a lab begins with, and the reader of the finished file.

Files of answers come from many people, so the reader trusts nothing: files that are large, that are
not regular files, or that are no TOML are errors, and an answer may have any type.
"""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eastwest import shipped
from eastwest.errors import InputError, did_you_mean
from eastwest.files import write_whole
from eastwest.labs.sheet import Lab, Question
from eastwest.reader import read_file
from eastwest.units import clean

#: Maximum length of a file of answers in bytes.
LARGEST = 64 * 1024
#: Maximum number of files in a folder of answers.
MOST_FILES = 2000


@dataclass(frozen=True)
class Answers:
    """Answers of one student to one lab, as the file has them."""

    file: str
    student: str
    lab: int
    #: Answers by the id of the question; values may have any type of TOML.
    given: dict[str, Any]
    #: Keys of the file that are no questions of the lab, each with the nearest key.
    unknown: tuple[str, ...] = ()


def template(lab: Lab) -> str:
    """Return the text of a file of answers without answers."""
    lines = [
        f"# Lab {lab.number}: {lab.title}",
        "# Write each answer between the quotation marks. Check this file with:",
        f"#     eastwest lab check {lab.number} answers-{lab.number}.toml",
        "# Answers come from runs with the seed of the scenario, unless a question names another.",
        "",
        f"lab = {lab.number}",
        'student = ""',
    ]
    for question in lab.questions:
        lines += ["", *_comment(f"{question.id} ({question.kind}): {question.text}")]
        for letter, text in question.choices.items():
            lines += _comment(f"{letter}: {text}", "   ")
        lines += [*_comment(f"Answer: {question.expected}."), f'{question.id} = ""']
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        100,
        initial_indent=f"# {indent}",
        subsequent_indent=f"# {indent}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def start(lab: Lab, folder: Path) -> list[Path]:
    """Write the scenarios of a lab and a file for its answers to a folder; return their paths.

    Raises ``InputError`` if one of these files exists already: nothing is written then.
    """
    if not folder.is_dir():
        raise InputError(f"{clean(str(folder), 400)}: there is no such folder")
    texts: dict[Path, bytes] = {}
    for name in lab.scenarios:
        path = shipped.find(name)
        assert path is not None, name
        texts[folder / path.name] = path.read_bytes()
    texts[folder / f"answers-{lab.number}.toml"] = template(lab).encode()
    for path in texts:
        if os.path.lexists(path):
            raise InputError(
                f"{clean(str(path), 400)} already exists, and is not replaced: rename it, or name "
                "another folder with --folder"
            )
    for path, text in texts.items():
        write_whole(path, text)
    return [*texts]


def read(path: Path, lab: Lab) -> Answers:
    """Return the answers in a file; raise ``InputError`` if it has no answers to this lab."""
    content = _content(path)
    where = clean(str(path), 400)
    number = content.pop("lab", None)
    if type(number) is not int or number != lab.number:
        said = f"lab = {clean(str(number), 20)}" if number is not None else "no key lab"
        raise InputError(
            f"{where}: has {said}, and must have lab = {lab.number}: answers to lab {lab.number}, "
            f"which eastwest lab start {lab.number} begins"
        )
    student = content.pop("student", "")
    if not isinstance(student, str):
        raise InputError(f'{where}: student: must be a text, such as "Ada"')
    ids = [question.id for question in lab.questions]
    unknown = [clean(key, 40) + did_you_mean(key, ids) for key in content if key not in ids]
    return Answers(
        str(path),
        clean(student.strip(), 100),
        lab.number,
        {key: value for key, value in content.items() if key in ids},
        tuple(unknown[:20]),
    )


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a small TOML file; raise ``InputError`` for any other file."""
    where = clean(str(path), 400)
    if not path.is_file():
        what = "is not a regular file" if path.exists() else "there is no such file"
        raise InputError(f"{where}: {what}")
    try:
        return read_file(path, LARGEST)[0]
    except InputError:
        raise
    except ValueError as error:  # a whole number with thousands of digits
        raise InputError(f"{where}: not TOML: {error}") from None


def files_in(folder: Path, lab: Lab) -> list[Path]:
    """Return the files of a folder that may have answers to a lab, sorted by name.

    Files whose names do not end in ``.toml``, links, scenarios and answers to other labs are left
    out. Files that cannot be read are included, so that ``read`` reports them.
    """
    found = sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    if len(found) > MOST_FILES:
        raise InputError(
            f"{clean(str(folder), 400)}: has {len(found):,} files; allowed are {MOST_FILES:,}"
        )
    return [path for path in found if not path.is_symlink() and _may_have_answers(path, lab)]


def _may_have_answers(path: Path, lab: Lab) -> bool:
    try:
        content = _content(path)
    except (InputError, OSError):
        return True
    other = type(content.get("lab")) is int and content["lab"] != lab.number
    return not other and "schema" not in content


def is_empty(value: object) -> bool:
    """Whether an answer is missing: an empty text, or blanks only."""
    return isinstance(value, str) and not value.strip()


def shown(value: object, question: Question) -> str:
    """Return an answer as a short text for messages; texts that are not graded may be longer."""
    most = 80 if question.is_graded else 4000
    return clean(value if isinstance(value, str) else repr(value)[: most + 1], most)
