"""Texts of errors: Python exceptions have the text that the command line prints."""

from __future__ import annotations

import pickle

import pytest

import eastwest as ew
from command_line import invoke
from eastwest.core import Problem
from eastwest.errors import InputError, ProblemsError, in_one_line
from fake_core import PROBLEMS, FakeCore

TEXT = """\
2 problems
  fabric.hosts_per_leef = 5: no such setting; did you mean hosts_per_leaf?
  fabric.mtu = 20: allowed: 576 to 9000 bytes"""


def test_an_error_of_a_scenario_has_the_text_of_the_command_line(fake: FakeCore) -> None:
    fake.problems = PROBLEMS
    code, _, err = invoke("run", "x.toml")
    assert (code, err) == (2, f"eastwest: {TEXT}\n")
    with pytest.raises(fake.ScenarioError) as caught:
        ew.run("x.toml")
    assert str(caught.value) == TEXT
    assert caught.value.problems == PROBLEMS


def test_the_simulators_error_names_place_value_range_and_the_nearest_setting() -> None:
    with pytest.raises(ew.ScenarioError) as caught:
        ew.run("first", set={"fabric.queue.limmit": "50 packets", "fabric.mtu": 20})
    number, *lines = str(caught.value).splitlines()
    assert number == f"{len(caught.value.problems)} problems"
    assert any("fabric.queue.limmit" in line and "did you mean limit?" in line for line in lines)
    assert any("fabric.mtu = 20: must be 68 to" in line for line in lines)
    assert invoke("run", "first", "--set", "fabric.queue.limmit=50 packets", "--set",
                  "fabric.mtu=20")[2] == f"eastwest: {caught.value}\n"  # fmt: skip


def test_an_error_of_a_sweep_has_the_text_of_the_command_line() -> None:
    with pytest.raises(InputError) as caught:
        ew.sweep("first", {"fabric.queue.limmit": ["50 packets"]}, seeds=2)
    assert isinstance(caught.value, ProblemsError)
    assert str(caught.value).startswith("1 problem\n  ")
    assert "did you mean" in str(caught.value)
    assert caught.value.problems[0]["path"].endswith("limmit")


def test_the_text_of_a_file_cannot_move_the_cursor() -> None:
    problem: Problem = {
        "path": "a\x1b[2J", "line": 7, "value": "\n", "message": "[bold]\r", "hint": "b\x07"
    }  # fmt: skip
    error = ProblemsError([problem])
    said = "  line 7: a\ufffd[2J = \ufffd: [bold]\ufffd; did you mean b\ufffd?"
    assert str(error) == f"1 problem\n{said}"
    assert in_one_line(error) == said.strip()
    assert in_one_line(ProblemsError([problem] * 9)).count("; line 7") == 4
    assert in_one_line(ValueError("plain")) == "plain"


def test_an_error_with_problems_can_be_sent_between_processes() -> None:
    again = pickle.loads(pickle.dumps(ProblemsError(PROBLEMS)))
    assert again.problems == PROBLEMS
    assert str(again) == TEXT
