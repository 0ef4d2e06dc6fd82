"""The worked examples of the guide: their commands run, and print what the guide shows."""

from __future__ import annotations

import importlib.util

import pytest

from project_paths import ROOT

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "guide" / "sweeps.md"


def test_the_guide_shows_what_its_commands_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EASTWEST_STORE", raising=False)
    spec = importlib.util.spec_from_file_location("shown", ROOT / "tools" / "shown.py")
    assert spec is not None and spec.loader is not None
    shown = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shown)
    assert shown.renewed(PAGE) == PAGE.read_text("utf-8"), f"run tools/shown.py {PAGE}"
