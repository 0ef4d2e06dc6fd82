"""Commands ``eastwest lab``: begin a lab, check answers of one student and of a class."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from command_line import invoke
from eastwest import shipped
from eastwest.cli.guard import BAD_INPUT, MISSED
from eastwest.labs import answers, measure, sheet

PAGE_1 = {
    "q1": "381 us",
    "q2": "464.6 KB",
    "q3": "17.9 Mbit/s",
    "q4": "16.8 Mbit/s",
    "q5": "c",
    "q6": "b",
    "q7": "10 ms",
    "q8": "573 Mbit/s",
    "q9": "480 KB",
    "q10": "8.35 Gbit/s",
    "q11": "8 KB",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fill(name: str, student: str, **changed: str) -> None:
    lines = ["lab = 1", f"student = {json.dumps(student)}"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in {**PAGE_1, **changed}.items()]
    Path(name).write_text("\n".join(lines))


def test_the_list_has_every_lab() -> None:
    code, out, _ = invoke("lab", "list", "--json")
    assert code == 0
    assert [row["lab"] for row in json.loads(out)] == sheet.numbers()
    code, out, _ = invoke("lab", "list")
    assert code == 0
    for number in sheet.numbers():
        assert sheet.load(number).title in out


@pytest.mark.parametrize("number", sheet.numbers())
def test_a_lab_begins_with_its_scenarios_and_a_file_for_answers(number: int, here: Path) -> None:
    code, out, err = invoke("lab", "start", str(number))
    assert code == 0, err
    lab = sheet.load(number)
    for name in lab.scenarios:
        path = shipped.find(name)
        assert path is not None
        assert (here / f"{name}.toml").read_bytes() == path.read_bytes()
    written = here / f"answers-{number}.toml"
    assert written.name in out
    text = " ".join(written.read_text().replace("\n# ", " ").split())
    assert all(question.text in text for question in lab.questions)
    assert answers.read(written, lab).given == {question.id: "" for question in lab.questions}
    code, _, _ = invoke("lab", "check", str(number), written.name)
    assert code == MISSED


def test_no_file_is_replaced(here: Path) -> None:
    (here / "answers-1.toml").write_text("mine")
    code, _, err = invoke("lab", "start", "1")
    assert code == BAD_INPUT and "answers-1.toml already exists" in err
    assert [path.name for path in here.iterdir()] == ["answers-1.toml"]
    assert (here / "answers-1.toml").read_text() == "mine"
    code, _, err = invoke("lab", "start", "1", "--folder", "absent")
    assert code == BAD_INPUT and "no such folder" in err


def test_a_dangling_link_is_not_followed(here: Path) -> None:
    (here / "lab-1-incast.toml").symlink_to(here / "elsewhere")
    code, _, _ = invoke("lab", "start", "1")
    assert code == BAD_INPUT and not (here / "elsewhere").exists()


def test_an_unknown_lab_is_an_error() -> None:
    code, _, err = invoke("lab", "start", "99")
    assert code == BAD_INPUT and "there is no lab 99" in err


def test_right_answers_pass() -> None:
    fill("a.toml", "Ada")
    code, out, err = invoke("lab", "check", "1", "a.toml")
    assert (code, err) == (0, "")
    assert "a.toml (Ada): 11 of 11 right" in out


def test_wrong_answers_have_a_distance_and_a_hint_but_not_the_answer() -> None:
    fill("a.toml", "Ada", q1="358 us", q4="", q7="200 ms", q9="4 GB", q2="12")
    code, out, _ = invoke("lab", "check", "1", "a.toml")
    assert code == MISSED
    assert "6 of 11 right" in out
    assert "wrong: 5 % too low" in out and "hint: Payload, headers and framing" in out
    assert "missing" in out
    assert "reads round p99 is 213 ms with seed 1" in " ".join(out.split())
    assert "outside the range 16 KB to 600 KB" in out
    assert "has no unit; write a size with its unit" in " ".join(out.split())
    assert "381" not in out


def test_a_class_is_checked_into_a_gradebook(here: Path) -> None:
    folder = here / "class"
    folder.mkdir()
    fill("class/ada.toml", "Ada")
    fill("class/bob.toml", "=HYPERLINK(1)", q6="a")
    code, out, err = invoke("lab", "check", "1", "class", "--csv", "grades.csv")
    assert code == MISSED, err
    assert "ada.toml (Ada): 11 of 11 right" in out and "10 of 11 right" in out
    rows = [*csv.DictReader(io.StringIO((here / "grades.csv").read_text()))]
    assert [(row["file"], row["student"], row["right"]) for row in rows] == [
        ("ada.toml", "Ada", "11"),
        ("bob.toml", "'=HYPERLINK(1)", "10"),
    ]
    assert rows[1]["q6"] == "wrong" and rows[1]["q12"] == "missing"
    code, _, err = invoke("lab", "check", "1", "class", "--csv", "grades.csv")
    assert code == BAD_INPUT and "already exists" in err
    code, _, err = invoke("lab", "check", "1", "class", "--csv", "class/ada.toml", "--force")
    assert code == BAD_INPUT and "input of this command" in err


def test_a_damaged_file_does_not_stop_the_others(here: Path) -> None:
    fill("a.toml", "Ada")
    (here / "b.toml").write_text("lab = ")
    code, out, err = invoke("lab", "check", "1", "b.toml", "a.toml", "--json")
    assert code == BAD_INPUT and "b.toml: not TOML" in err
    (found,) = json.loads(out)
    assert (found["file"], found["right"], found["graded"]) == ("a.toml", 11, 11)
    assert found["answers"][0] == {
        "question": "q1",
        "kind": "prediction",
        "state": "right",
        "given": "381 us",
        "said": "",
    }


def test_a_scenario_of_the_student_does_not_change_the_check(here: Path) -> None:
    invoke("lab", "start", "1")
    text = (here / "lab-1-incast.toml").read_text().replace("256 KB", "1 MB")
    for name in ("lab-1-incast.toml", "lab-1-incast"):
        (here / name).write_text(text)
    fill("a.toml", "Ada", q9="300 KB")
    measure._metrics.cache_clear()
    code, out, _ = invoke("lab", "check", "1", "a.toml")
    assert code == MISSED and "10 of 11 right" in out


def test_a_folder_without_answers_is_an_error(here: Path) -> None:
    (here / "empty").mkdir()
    code, _, err = invoke("lab", "check", "1", "empty")
    assert code == BAD_INPUT and "no answers to lab 1" in err
