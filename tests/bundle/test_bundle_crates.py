"""Bundles with a mechanism crate in Rust, which is compiled where the bundle is opened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import eastwest as ew
from bundles import contents
from eastwest.errors import InputError
from eastwest.mechanisms import new
from eastwest.mechanisms.new import Kind
from project_paths import ROOT
from tiny import TINY

pytestmark = pytest.mark.long


def test_a_crate_is_compiled_from_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Shared with the tests of mechanisms, so that Eastwest is compiled once.
    monkeypatch.setenv("CARGO_TARGET_DIR", str(ROOT / "target" / "mechanisms"))
    crate = new.write("packed", Kind.queue).folder
    settings = {"fabric.queue.kind": "packed"}
    ew.run(TINY, set=settings, mechanisms=[crate], out="results/packed")
    made = ew.bundle("results/packed", mechanisms=[crate], pictures=False)
    assert "mechanisms/packed/src/lib.rs" in contents(made.path)[1]
    manifest = Path(crate, "Cargo.toml")
    # The folder of the Rust source on the author's machine is absent on another machine.
    text = contents(made.path)[1]["mechanisms/packed/Cargo.toml"].decode()
    assert text == manifest.read_text()
    shutil.rmtree(crate)
    with pytest.raises(InputError, match="--run-code"):
        made.rerun(jobs=0)
    (found,) = made.rerun(jobs=0, run_code=True)
    assert found.state == "equal"
