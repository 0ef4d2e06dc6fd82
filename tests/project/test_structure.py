"""Rules about the structure of the code that must remain true."""

from __future__ import annotations

import pytest

from modules import circles, crates, imports

CRATES = crates()


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_no_modules_of_a_crate_import_each_other_in_a_circle(crate: str) -> None:
    assert circles(imports(CRATES[crate])) == []


def test_a_circle_would_be_found() -> None:
    files = {
        (): "mod a; mod b;",
        ("a",): "use crate::b::{self, B};",
        ("b",): "fn f() -> u8 { super::a::F }",
        ("b", "c"): "use super::B;",
    }
    assert circles(imports(files)) == [[("a",), ("b",)]]
    files["b",] = "use crate::b::c::C;"
    assert circles(imports(files)) == [[("b",), ("b", "c")]]
