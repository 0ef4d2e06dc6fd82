"""Reader of the labs: their questions, and the bands of right answers."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

from eastwest.errors import InputError
from eastwest.run import Setting
from eastwest.sweep.values import Bound

#: Folder of the files that declare the questions, one for each lab.
DATA = Path(__file__).resolve().parent / "data"


class Kind(StrEnum):
    """Kinds of questions."""

    prediction = "prediction"
    measurement = "measurement"
    choice = "choice"
    setting = "setting"
    text = "text"


@dataclass(frozen=True)
class Run:
    """Run of a scenario from which a measured answer is read."""

    scenario: str
    #: Settings that differ from the scenario, by path.
    set: Mapping[str, Setting]
    #: Name of a metric of the summary, or ``links.LINK.COLUMN``: a number of the table ``links``.
    metric: str
    #: Seed of the run; None: the answer is right for every seed of the tests.
    seed: int | None = None


@dataclass(frozen=True)
class Band:
    """Right answers of a question with a number: from ``low`` to ``high``, in units of a kind."""

    low: Bound
    high: Bound

    @property
    def kind(self) -> str:
        """Kind of the unit, such as ``time``; ``number`` for a number without a unit."""
        return "number" if self.low.kind == "whole" else self.low.kind

    def holds(self, number: Fraction) -> bool:
        """Whether a number in the smallest unit of the kind is in the band."""
        return self.low.number <= number <= self.high.number


@dataclass(frozen=True)
class Trial:
    """Runs that decide whether a value of a setting is a right answer."""

    scenario: str
    setting: str
    #: Other settings of the runs that differ from the scenario, by path.
    set: Mapping[str, Setting]
    #: Table ``[goal]`` that each run must meet: a limit by measure.
    goal: Mapping[str, str]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """A question of a lab, with its right answers."""

    id: str
    kind: Kind
    text: str
    hint: str
    #: Right numbers; for a question about a setting, the range of values that may be tried.
    band: Band | None
    #: Text of each choice, by its letter.
    choices: Mapping[str, str]
    right: str
    runs: tuple[Run, ...]
    #: Relation between two runs that is the answer: ``ratio`` or ``difference``; empty for one run.
    combine: str
    trial: Trial | None
    #: Answers that a likely mistake gives: tests check that they are wrong.
    mistakes: tuple[Setting, ...]

    @property
    def is_graded(self) -> bool:
        """Whether an answer is right or wrong; texts are read by the teacher only."""
        return self.kind is not Kind.text

    @property
    def expected(self) -> str:
        """Return words for the form of an answer, such as ``a time, such as "1.5 ms"``."""
        if self.kind is Kind.choice:
            letters = [*self.choices]
            return f"one letter: {', '.join(letters[:-1])} or {letters[-1]}"
        if self.kind is Kind.text:
            return "one or two sentences; they are not graded"
        assert self.band is not None
        return FORMS[self.band.kind]


#: Words for answers with a unit of each kind, with an example.
FORMS = {
    "time": 'a time with its unit, such as "1.5 ms"',
    "rate": 'a rate with its unit, such as "2.5 Gbit/s"',
    "size": 'a size with its unit, such as "64 KB"',
    "energy": 'an energy with its unit, such as "1.5 mJ"',
    "packets": 'a number of packets, such as "20 packets"',
    "share": 'a percentage, such as "12 %"',
    "number": "a number without a unit, such as 12",
}


@dataclass(frozen=True)
class Lab:
    """A lab: its number, title, duration, scenarios and questions."""

    number: int
    title: str
    minutes: int
    #: Names of its shipped scenarios; the first one is the main scenario.
    scenarios: tuple[str, ...]
    questions: tuple[Question, ...]

    @property
    def graded(self) -> tuple[Question, ...]:
        """Return the questions whose answers are right or wrong."""
        return tuple(question for question in self.questions if question.is_graded)


def numbers() -> list[int]:
    """Return the numbers of all labs in ascending order."""
    return sorted(int(path.stem.removeprefix("lab-")) for path in DATA.glob("lab-*.toml"))


@functools.cache
def load(number: int) -> Lab:
    """Return the lab with a number; raise ``InputError`` if there is none."""
    if number not in numbers():
        known = ", ".join(map(str, numbers()))
        raise InputError(f"there is no lab {number}; labs: {known}; eastwest lab list shows them")
    content = tomllib.loads((DATA / f"lab-{number}.toml").read_text("utf-8"))
    scenarios = tuple(content["scenarios"])
    return Lab(
        number,
        content["title"],
        content["minutes"],
        scenarios,
        tuple(_question(each, scenarios[0]) for each in content["question"]),
    )


def _question(given: Mapping[str, Any], scenario: str) -> Question:
    return Question(
        given["id"],
        Kind(given["kind"]),
        " ".join(given["text"].split()),
        " ".join(given.get("hint", "").split()),
        Band(_bound(given["low"]), _bound(given["high"])) if "low" in given else None,
        given.get("choices", {}),
        given.get("right", ""),
        tuple(
            Run(run.get("scenario", scenario), run.get("set", {}), run["metric"], run.get("seed"))
            for run in given.get("run", [])
        ),
        given.get("combine", ""),
        _trial(given, scenario) if "setting" in given else None,
        tuple(given.get("mistakes", ())),
    )


def _trial(given: Mapping[str, Any], scenario: str) -> Trial:
    return Trial(
        given.get("scenario", scenario),
        given["setting"],
        given.get("set", {}),
        given["goal"],
        tuple(given.get("seeds", (1, 2, 3))),
    )


def _bound(value: object) -> Bound:
    bound = Bound.read(value)
    assert bound is not None, value
    return bound
