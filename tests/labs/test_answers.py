"""Bands of right answers: measured again, computed again, and safe from likely mistakes."""

from __future__ import annotations

import math
import re
import tomllib
from fractions import Fraction

import pytest

import lab_pages
from eastwest import shipped
from eastwest.errors import in_one_line
from eastwest.labs import grade, measure, sheet
from eastwest.labs.answers import Answers
from eastwest.labs.grade import State
from eastwest.labs.sheet import Kind, Lab, Question
from eastwest.run import check

SEEDS = (1, 2, 3)
#: Least distance of a right answer from the edges of its band, as a share of the band's width.
MARGIN = Fraction(1, 10)
LABS = [sheet.load(number) for number in sheet.numbers()]
#: Questions whose runs take a second or more.
SLOW = {(4, "q8"), (5, "q6"), (6, "q8")}
ASKED = [(lab, question) for lab in LABS for question in lab.questions]


def named(value: object) -> str:
    return f"lab-{value.number}" if isinstance(value, Lab) else getattr(value, "id", str(value))


def of(*wanted: Kind) -> pytest.MarkDecorator:
    """Run a test for each question of some kinds."""
    chosen = [
        pytest.param(lab, question, marks=[pytest.mark.slow] * ((lab.number, question.id) in SLOW))
        for lab, question in ASKED
        if question.kind in wanted
    ]
    return pytest.mark.parametrize(("lab", "question"), chosen, ids=named)


def is_inside(question: Question, number: Fraction) -> bool:
    """Whether a number is in the band and not near its edges."""
    assert question.band is not None
    low, high = question.band.low.number, question.band.high.number
    margin = (high - low) * MARGIN
    return low + margin <= number <= high - margin


def verdict(lab: Lab, question: Question, value: object) -> grade.Verdict:
    graded = grade.grade(lab, Answers("a.toml", "", lab.number, {question.id: value}))
    return next(each for each in graded.verdicts if each.question == question)


@of(Kind.measurement)
def test_measured_answers_are_inside_their_bands(lab: Lab, question: Question) -> None:
    assert question.runs
    for seed in SEEDS:
        number = measure.answer(question, seed)
        assert is_inside(question, number), (seed, float(number))


US, MS, PACKET = 10**6, 10**9, 1500
MBPS, GBPS = 10**6, 10**9
#: Bytes of a packet of 1,500 IP bytes with Ethernet framing.
WIRE = PACKET + 38
#: Payload of a full packet of TCP with timestamps.
MSS = 1448


def time(bits: Fraction | int, rate: int) -> Fraction:
    """Return the time in ps that bits take at a rate in bit/s."""
    return Fraction(bits) * 10**12 / rate


def asleep_share(gap_us: float, frame_us: float, falls_us: float, wakes_us: float) -> Fraction:
    """Return the energy of a sleeping link in % of an awake link (Herrería-Alonso et al. 2012)."""
    off = gap_us * math.exp(-falls_us / gap_us)
    saved = 0.9 * (1 - frame_us / gap_us) * off / (off + falls_us + wakes_us)
    return Fraction(100 * (1 - saved))


#: Share of a host's flow at the first port of the ring: the solution of a = 1 / (1 + a).
GOLDEN = (math.sqrt(5) - 1) / 2
FRAME_10G = time(WIRE * 8, 10 * GBPS)
READ = time(32 * (14_000 + 10 * (52 + 38)) * 8, 10 * GBPS)
COPY = Fraction(20_000_000) * WIRE / MSS
#: Closed forms of the predictions, in the smallest unit of their kind (ps, bit/s, B).
CLOSED_FORMS: dict[tuple[int, str], Fraction] = {
    (1, "q1"): READ,
    (1, "q2"): Fraction(32 * (14_000 + 10 * 52)),
    (1, "q3"): Fraction(32 * 14_000 * 8) * 10**12 / (200 * MS + READ),
    (2, "q1"): time(1000 * WIRE * 8, GBPS),
    (2, "q2"): Fraction(GBPS * 4 * 20, 8 * 10**6),
    (2, "q7"): Fraction(600 * US) / time(WIRE * 8, GBPS),
    (3, "q1"): Fraction(10 * GBPS * 85, 10**6) / 7 / 8 / PACKET,
    (3, "q2"): 65 * FRAME_10G,
    (3, "q3"): Fraction(15, 16) ** 10,
    (3, "q11"): Fraction(71 + 10, 2),
    (4, "q1"): time(COPY * 8, 10 * GBPS),
    (4, "q2"): 100 * Fraction(math.factorial(4), 4**4),
    (4, "q3"): 4 * (1 - Fraction(3, 4) ** 4),
    (4, "q10"): time(COPY * 8, 2_500 * MBPS),
    (5, "q1"): Fraction(40 * GBPS * (2 * 1000 + 3072), 8 * 10**9) + 2 * WIRE + 84 + PACKET,
    (5, "q8"): time((75_000 - 11_000) * 8, 1) / Fraction(10 * GBPS - GOLDEN * 10 * GBPS),
    (6, "q1"): 100 * FRAME_10G / (FRAME_10G + 4_480_000 + 2_880_000),
    (6, "q2"): 10 + 90 * FRAME_10G / (20 * US),
    (6, "q3"): asleep_share(20, float(FRAME_10G) / US, 2.88, 4.48),
    (6, "q7"): Fraction(4 * 4_480_000 + 4 * 5_500_000),
}


@of(Kind.prediction)
def test_predictions_agree_with_their_closed_forms(lab: Lab, question: Question) -> None:
    assert is_inside(question, CLOSED_FORMS[lab.number, question.id])


def test_every_closed_form_belongs_to_a_prediction() -> None:
    predictions = {(lab.number, q.id) for lab, q in ASKED if q.kind is Kind.prediction}
    assert CLOSED_FORMS.keys() == predictions


@of(Kind.prediction, Kind.measurement, Kind.setting)
def test_likely_mistakes_are_wrong(lab: Lab, question: Question) -> None:
    assert len(question.mistakes) >= 2
    for mistake in question.mistakes:
        found = verdict(lab, question, mistake)
        assert found.state is State.wrong and found.said, mistake


@of(Kind.choice)
def test_one_choice_is_right(lab: Lab, question: Question) -> None:
    assert 3 <= len(question.choices) <= 6
    states = {letter: verdict(lab, question, letter).state for letter in question.choices}
    assert states.pop(question.right) is State.right
    assert {*states.values()} == {State.wrong}


def solved() -> dict[int, dict[str, object]]:
    """Return the answers on the page of solutions, by the number of the lab."""
    text = lab_pages.SOLUTIONS.read_text("utf-8")
    found = [
        tomllib.loads(block) for block in re.findall(r"^```toml\n(.*?)^```", text, re.M | re.S)
    ]
    return {each["lab"]: each for each in found}


@pytest.mark.parametrize("lab", LABS, ids=named)
def test_the_solutions_are_right(lab: Lab) -> None:
    given = solved()[lab.number]
    sheets = grade.grade(lab, Answers("solutions.md", "", lab.number, given))
    wrong = [
        (each.question.id, each.said)
        for each in sheets.verdicts
        if each.state not in {State.right, State.answered}
    ]
    assert wrong == []


@pytest.mark.parametrize("lab", LABS, ids=named)
def test_a_lab_has_its_parts(lab: Lab) -> None:
    assert [question.id for question in lab.questions] == [
        f"q{n + 1}" for n in range(len(lab.questions))
    ]
    assert 8 <= len(lab.questions) <= 12
    assert 60 <= lab.minutes <= 90
    kinds = {question.kind for question in lab.questions}
    assert kinds >= {Kind.prediction, Kind.measurement, Kind.choice, Kind.setting, Kind.text}
    for name in lab.scenarios:
        path = shipped.find(name)
        assert path is not None
        assert not [in_one_line(ValueError(each)) for each in check(path)]
    for question in lab.graded:
        assert question.hint, question.id


@pytest.mark.parametrize("lab", LABS, ids=named)
def test_the_sheet_asks_the_declared_questions_in_their_order(lab: Lab) -> None:
    page = lab_pages.page_of(lab.number)
    assert lab_pages.asked(page) == [question.id for question in lab.questions]
    text = page.read_text("utf-8")
    assert text == lab_pages.renewed(page), "run tools/lab_pages.py"
    assert f"{lab.minutes} minutes" in text
    assert all(name in text for name in lab.scenarios)


def test_the_solutions_have_every_question() -> None:
    text = lab_pages.SOLUTIONS.read_text("utf-8")
    assert text == lab_pages.renewed(lab_pages.SOLUTIONS), "run tools/lab_pages.py"
    marks = re.findall(r"<!-- right (\d+) (q\d+) -->", text)
    assert marks == [(str(lab.number), question.id) for lab, question in ASKED]
