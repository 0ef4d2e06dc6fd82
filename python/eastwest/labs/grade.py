"""Decisions on answers: right, wrong with the distance to the band, not readable, or missing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from eastwest.labs.answers import Answers, is_empty, shown
from eastwest.labs.measure import missed
from eastwest.labs.sheet import Band, Kind, Lab, Question
from eastwest.sweep.values import Bound
from eastwest.units import count

#: Maximum length of an answer with a number or a letter, in characters.
_LONGEST = 100
#: Largest number, in the smallest unit of a kind, that is compared with a band.
_LARGEST = Fraction(10) ** 30


class State(StrEnum):
    """Results of the check of an answer."""

    right = "right"
    wrong = "wrong"
    unreadable = "not readable"
    missing = "missing"
    answered = "answered, not graded"


@dataclass(frozen=True)
class Verdict:
    """Result of the check of one answer."""

    question: Question
    state: State
    #: Answer of the student as text; empty if it is missing.
    given: str = ""
    #: Distance from the band, the goal that is missed, or the reason why an answer is not readable.
    said: str = ""


@dataclass(frozen=True)
class Sheet:
    """Results of the check of all answers of a student."""

    answers: Answers
    verdicts: tuple[Verdict, ...]

    @property
    def right(self) -> int:
        """Number of right answers."""
        return sum(verdict.state is State.right for verdict in self.verdicts)

    @property
    def graded(self) -> int:
        """Number of questions whose answers are right or wrong."""
        return sum(verdict.question.is_graded for verdict in self.verdicts)


def grade(lab: Lab, answers: Answers) -> Sheet:
    """Return the results of the check of all answers; questions about settings run scenarios."""
    return Sheet(
        answers, tuple(_verdict(each, answers.given.get(each.id, "")) for each in lab.questions)
    )


def _verdict(question: Question, value: Any) -> Verdict:
    """Return the result of the check of one answer, which may be any value of TOML."""
    if is_empty(value):
        return Verdict(question, State.missing)
    state, said = _checked(question, value)
    if state is State.unreadable:
        said = f"{said}; write {question.expected}" if said else f"write {question.expected}"
    return Verdict(question, state, shown(value, question), said)


def _checked(question: Question, value: Any) -> tuple[State, str]:
    """Return (state of an answer that is not missing, distance or reason)."""
    if question.kind is Kind.text:
        return (State.answered if isinstance(value, str) else State.unreadable), ""
    if question.kind is Kind.choice:
        letter = value.strip().lower() if isinstance(value, str) else ""
        known = State.right if letter == question.right else State.wrong
        return (known if letter in question.choices else State.unreadable), ""
    assert question.band is not None
    bound, message = read_number(value, question.band.kind)
    if bound is None:
        return State.unreadable, message
    said = distance(question.band, bound.number)
    if question.trial is not None and said:
        low, high = question.band.low.given, question.band.high.given
        said = f"outside the range {low} to {high}"
    elif question.trial is not None:
        said = missed(question.trial, bound)
    return (State.wrong if said else State.right), said


def read_number(value: Any, kind: str) -> tuple[Bound | None, str]:
    """Return (number with a unit of ``kind``, ``""``), or (None, reason why there is none)."""
    if isinstance(value, str):
        if len(value) > _LONGEST:
            return None, f"longer than {_LONGEST} characters"
        # U+03BC is the Greek letter; the unit has the sign U+00B5.
        value = value.replace("\N{GREEK SMALL LETTER MU}", "\N{MICRO SIGN}").replace("\xa0", " ")
    bound = Bound.read(value)
    if bound is None and isinstance(value, str):
        # A text without a unit, such as "12".
        plain = Bound.read(f"{value} packets")
        bound = Bound(plain.number, "", "number", value) if plain is not None else None
    if bound is None:
        return None, "not a number with a known unit"
    if abs(bound.number) > _LARGEST:
        return None, "too large"
    found = "number" if bound.kind == "whole" else bound.kind
    if found == kind:
        return bound, ""
    return None, "has no unit" if found == "number" else "has a unit of another kind"


def distance(band: Band, number: Fraction) -> str:
    """Return the distance of a number from the band as text; empty if the band contains it."""
    if band.holds(number):
        return ""
    edge, word = (band.low, "low") if number < band.low.number else (band.high, "high")
    if not edge.number or number * edge.number <= 0:
        return f"too {word}"
    factor = float(max(number / edge.number, edge.number / number))
    if factor >= 2:
        return f"too {word} by a factor of {count(float(f'{factor:.2g}'))}"
    share = float(abs(number - edge.number) / abs(edge.number))
    return f"{max(1, round(100 * share))} % too {word}"
