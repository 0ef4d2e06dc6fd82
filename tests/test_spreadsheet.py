"""Cells of tables: no text becomes a formula, and names survive writing and reading."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastwest.spreadsheet import cell, plain, table, text_cell

SIGNS = "=+-@\t\r"


@given(st.text(alphabet=SIGNS + "' a1", max_size=6))
def test_every_text_comes_back_and_none_is_a_formula(text: str) -> None:
    written = text_cell(text)
    assert plain(written) == text
    assert not written.startswith(tuple(SIGNS))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("'=1", "''=1"),
        ("'quoted'", "'quoted'"),
        ("web", "web"),
        ("", ""),
    ],
)
def test_only_what_has_to_change_changes(text: str, written: str) -> None:
    assert text_cell(text) == written


def test_numbers_stay_numbers() -> None:
    assert [cell(value) for value in (-1.5, -2, None, True)] == [-1.5, -2, None, True]
    rows = list(csv.reader(table(["a", "-b"], [["=x", -1.5], ["y", None]]).splitlines()))
    assert rows == [["a", "'-b"], ["'=x", "-1.5"], ["y", ""]]
