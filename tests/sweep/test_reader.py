"""Typed values of TOML tables, and errors about missing or wrong values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eastwest.errors import InputError, ProblemsError, nearest
from eastwest.reader import Table, flat, meant, read_file


def told(table: Table) -> dict[str, str]:
    return {p["path"]: p["message"] for p in table.problems}


def test_values_are_returned_in_their_types() -> None:
    table = Table(
        {
            "text": " a ", "share": "5 %", "whole": 3, "list": ["a", "b"], "kind": "log",
            "seeds": [1, 4], "set": {"a": {"b": 1}, "c.d": 2}, "part": [{"x": 1}, {"x": 2}],
        }
    )  # fmt: skip
    assert (table.text("text"), table.words("text"), table.text("none", "b")) == (" a ", "a", "b")
    assert (table.number("share", 0.1, 0, 1), table.any_number("whole")) == (0.05, 3.0)
    assert table.any_number("none") is None
    assert (table.integer("whole", None, 1, 3), table.integer("none", 7, 1, 9)) == (3, 7)
    assert table.integers("seeds", 9, 2) == (1, 4)
    assert (table.texts("list"), table.texts("none", ["c"])) == (("a", "b"), ("c",))
    assert table.one_of("kind", ("log", "linear")) == "log"
    assert table.settings("set") == {"a.b": 1, "c.d": 2} == flat(table.get("set"))
    assert [(each.where, each.get("x")) for each in table.tables("part", ("x",))] == [
        ("part.0.", 1), ("part.1.", 2),
    ]  # fmt: skip
    assert table.table("none").content == {}
    table.refuse()


def test_a_list_that_is_too_long_is_told_with_its_limit() -> None:
    table = Table({"names": ["a", "b", "c"], "wrong": ["a", 3]})
    assert table.texts("names", most=2) == table.texts("wrong", most=2) == ()
    assert told(table) == {
        "names": "has 3 entries; at most 2 are allowed",
        "wrong": "must be a list of texts",
    }


@pytest.mark.parametrize("value", [None, True, [], {}, 1e30, -1, "", [[]], float("nan")])
def test_any_wrong_value_is_a_problem_of_its_key(value: Any) -> None:
    content = {} if value is None else {"k": value}
    reads: list[Callable[[Table], object]] = [
        lambda t: t.text("k"),
        lambda t: t.integer("k", None, 0, 9),
        lambda t: t.integers("k", 9, 9),
        lambda t: t.one_of("k", ("a", "b")),
    ]
    for read in reads:
        table = Table(content, "top.")
        read(table)
        assert [*told(table)] == ["top.k"]
        with pytest.raises(ProblemsError, match=r"top\.k( = .*)?: (is missing:|must be|allowed:)"):
            table.refuse()


def test_problems_of_inner_tables_are_those_of_the_file() -> None:
    table = Table({"a": [{"b": {"kinde": 1}}], "c": 3, "schema": 1})
    inner = table.tables("a")[0].table("b")
    inner.keys(("kind",))
    inner.wrong("", None, "is no good")
    inner.no_such("of", "rats", "rates", ["rates"])
    assert table.table("c").content == {} and table.tables("c") == []
    table.head(("format", "a", "c"), 1)
    assert told(table) == {
        "a.0.b.kinde": "unknown key; allowed: kind",
        "a.0.b": "is no good",
        "a.0.b.of": "unknown rates; allowed: rates",
        "c": "must be tables, each beginning with [[c]]",
        "schema": "unknown key; allowed: format, a, c",
    }
    assert [p["hint"] for p in table.problems][-1] == "format"
    needed = Table({})
    needed.head(("format",), 1, needed=True)
    assert told(needed) == {"format": "must be 1, the version of the format"}


def test_the_nearest_name() -> None:
    assert nearest("rats", ["rates", "ports"]) == "rates" and nearest("x", ["rates"]) is None
    assert meant("rats", ["rates"]) == "did you mean rates?"
    assert meant("x", ["rates", "ports"]) == "allowed: rates, ports"


def test_limits_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("a = 1\n")
    assert read_file(path) == ({"a": 1}, "a = 1\n")
    with pytest.raises(InputError, match="larger than"):
        read_file(path, 3)
    with pytest.raises(InputError, match="at most 32 levels"):
        content: dict[str, Any] = {}
        for _ in range(40):
            content = {"a": content}
        Table(content)
