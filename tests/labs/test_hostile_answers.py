"""Files of answers are untrusted: units, wrong types, large files, links, pipes."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from eastwest.errors import InputError
from eastwest.labs import answers, grade, sheet
from eastwest.labs.grade import State, read_number
from eastwest.sweep.values import Bound

LAB = sheet.load(1)


def state(id: str, value: object) -> State:
    given = answers.Answers("a.toml", "", 1, {id: value})
    return next(v.state for v in grade.grade(LAB, given).verdicts if v.question.id == id)


@pytest.mark.parametrize(
    "text",
    ["1.2 ms", "1200 us", "1200 µs", "1200 \N{GREEK SMALL LETTER MU}s", " 1.2e0  ms ", "0.0012 s"],
)
def test_units_of_one_kind_are_equal(text: str) -> None:
    bound, message = read_number(text, "time")
    assert message == "" and bound is not None
    assert bound.number == Fraction(1_200_000_000)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (381, "has no unit"),
        ("381", "has no unit"),
        ("381 KB", "another kind"),
        ("381 parsecs", "not a number"),
        ("1,2 ms", "not a number"),
        ("nan us", "not a number"),
        (float("nan"), "not a number"),
        (float("inf"), "not a number"),
        (True, "not a number"),
        ([381], "not a number"),
        ({"us": 381}, "not a number"),
        ("1e99 s", "too large"),
        ("1e999 s", "not a number"),
        ("9" * 200 + " us", "longer"),
        ("381 us" + "\x00", "not a number"),
    ],
)
def test_answers_that_are_no_time_are_not_readable(value: object, reason: str) -> None:
    bound, message = read_number(value, "time")
    assert bound is None and reason in message
    assert state("q1", value) is State.unreadable


@pytest.mark.parametrize("value", [12, "12", " 12 ", 12.0, "1.2e1"])
def test_numbers_without_a_unit_may_be_texts(value: object) -> None:
    bound, _ = read_number(value, "number")
    assert bound is not None and bound.number == 12


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_answer_is_missing(value: str) -> None:
    assert state("q1", value) is state("q12", value) is State.missing


@pytest.mark.parametrize("value", ["e", "bb", "b c", 2, None, ["b"], True])
def test_a_choice_is_one_letter(value: object) -> None:
    assert state("q6", value) is State.unreadable


def test_a_choice_may_be_a_capital_letter() -> None:
    assert state("q6", " B ") is State.right


def test_a_setting_is_limited_to_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grade, "missed", lambda trial, bound: pytest.fail("a run was started"))
    for value in ("10 s", "1 us", "0 s", "-1 ms", "1e9 s", "10 ms\nseed = 5", '1 ms", x = "2', 5):
        assert state("q7", value) in {State.wrong, State.unreadable}, value


def test_a_setting_passes_no_text_of_the_student() -> None:
    from eastwest.labs.measure import setting  # noqa: PLC0415

    for given, passed in [
        ("1.5 ms", "1500000000 ps"),
        ("20 packets", "20 packets"),
        ("64 KiB", "65536 B"),
        ("2.5 Gbit/s", "2500000000 bit/s"),
        ("40 %", "40 %"),
        (3, 3),
        (0.25, 0.25),
    ]:
        bound = Bound.read(given)
        assert bound is not None
        assert setting(bound) == passed


def test_distances_have_a_direction_and_a_size() -> None:
    band = LAB.questions[0].band
    assert band is not None
    assert grade.distance(band, Fraction(380 * 10**6)) == ""
    assert grade.distance(band, Fraction(358 * 10**6)) == "5 % too low"
    assert grade.distance(band, Fraction(400 * 10**6)) == "4 % too high"
    assert grade.distance(band, Fraction(3860 * 10**6)) == "too high by a factor of 10"
    assert grade.distance(band, Fraction(0)) == "too low"
    assert grade.distance(band, Fraction(-5)) == "too low"


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "answers.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no key lab"),
        ("lab = 2", "lab = 2"),
        ("lab = true", "lab = True"),
        ('lab = "1"', "must have lab = 1"),
        ("lab = 1\nstudent = 5", "student: must be a text"),
        ("lab = 1\nq1 = ", "not TOML"),
        ("lab = " + "[" * 30_000, "not TOML"),
        ("lab = 1\nq1 = " + "9" * 5000, "not TOML"),
        (b'lab = 1\nq1 = "\xff"', "not UTF-8"),
        ("lab = 1\n" + "#" * 70_000, "larger than 65,536 bytes"),
        ("a." * 200 + "b = 1", "dots"),
        ("\x1b[2J", "not TOML"),
    ],
)
def test_damaged_files_are_errors_with_their_name(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError) as error:
        answers.read(path, LAB)
    assert str(path) in str(error.value) and message in str(error.value)
    assert "\x1b" not in str(error.value)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, tmp_path / "absent.toml"):
        with pytest.raises(InputError, match=r"regular file|no such file"):
            answers.read(path, LAB)


def test_a_wrong_key_has_the_nearest_question(tmp_path: Path) -> None:
    read = answers.read(write(tmp_path, 'lab = 1\nq13 = "1"\n"a\\u001b" = 1\nQ1 = "2 us"'), LAB)
    assert read.given == {}
    assert "q13; did you mean q" in read.unknown[0]
    assert "\x1b" not in "".join(read.unknown)


def test_a_folder_has_answers_to_one_lab(tmp_path: Path) -> None:
    (tmp_path / "ada.toml").write_text("lab = 1")
    (tmp_path / "bob.toml").write_text("lab = ")
    (tmp_path / "other-lab.toml").write_text("lab = 2")
    (tmp_path / "lab-1-incast.toml").write_text('schema = 1\nname = "x"')
    (tmp_path / "notes.txt").write_text("lab = 1")
    (tmp_path / "link.toml").symlink_to("/dev/zero")
    names = [path.name for path in answers.files_in(tmp_path, LAB)]
    assert names == ["ada.toml", "bob.toml"]


def test_a_name_has_no_control_characters(tmp_path: Path) -> None:
    read = answers.read(write(tmp_path, 'lab = 1\nstudent = "A\\u001b[2J' + "x" * 500 + '"'), LAB)
    assert "\x1b" not in read.student and len(read.student) <= 100
