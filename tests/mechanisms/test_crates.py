"""Builds of mechanism crates: calls of cargo, places of its files, choice of the source.

A script takes the place of cargo, so that nothing is compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import eastwest as ew
import shipped_source
from eastwest import cache, core
from eastwest.errors import MechanismError
from eastwest.mechanisms import crate, new, source
from eastwest.mechanisms.new import Kind
from project_paths import ROOT

CARGO = """#!{python}
import json, os, pathlib, sys
arguments = sys.argv[1:]
with open("{log}", "a") as log:
    log.write(json.dumps([arguments, os.getcwd()]) + "\\n")
text = pathlib.Path("src/lib.rs").read_text()
if arguments[0] == "check" and text == "wrong":
    sys.exit("error[E0308]: mismatched types")
library = pathlib.Path(arguments[arguments.index("--target-dir") + 1]) / "libmine.so"
if arguments[0] == "build":
    library.write_text(text)
manifest = str(pathlib.Path("Cargo.toml").resolve())
print(json.dumps({{"reason": "compiler-artifact", "manifest_path": manifest,
    "filenames": [str(library)]}}))
"""


@pytest.fixture(autouse=True)
def away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Change to an empty folder, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("CARGO_TARGET_DIR", "EASTWEST_SOURCE", crate.RELEASE):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


class Asked:
    """The crate ``mine``, and the calls of the script that replaces cargo."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.folder = folder
        self.log = log
        #: Folders that the next loaded libraries name as their own, in this order.
        self.folders: list[Path] = []

    def commands(self) -> list[list[str]]:
        """Return the commands with their arguments, without arguments that all commands have."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [json.loads(line)[0] for line in lines]

    def own(self) -> core.OwnCrate:
        folder = self.folders.pop(0) if self.folders else self.folder.resolve()
        return {
            "name": "mine",
            "version": "0.1.0",
            "folder": str(folder),
            "profile": "development",
            "mechanisms": [("queue", "mine")],
        }


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, away: Path) -> Asked:
    """Make a new crate, and replace cargo by a script."""
    log = away / "log"
    (away / "bin").mkdir()
    cargo = away / "bin" / "cargo"
    cargo.write_text(CARGO.format(python=sys.executable, log=log))
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", str(away / "bin"), prepend=os.pathsep)
    made = Asked(new.write("mine", Kind.queue, source=ROOT).folder, log)
    monkeypatch.setattr(crate, "load", lambda _: SimpleNamespace(own_crate=made.own))
    return made


def target(command: list[str]) -> Path:
    return Path(command[command.index("--target-dir") + 1])


def test_a_check_comes_before_the_first_build_only(asked: Asked, away: Path) -> None:
    crate.build(asked.folder)
    crate.build(asked.folder)
    first, second, third = asked.commands()
    assert [first[0], second[0], third[0]] == ["check", "build", "build"]
    assert "--release" not in first + second + third
    # All crates with this source are built in the user's cache folder.
    places = {target(one) for one in (first, second, third)}
    assert places == {source.compiled(ROOT)}
    assert places.pop().is_relative_to(away / "cache" / "eastwest")
    # The profile with full optimisation is built for the first time.
    crate.build(asked.folder, release=True)
    released = asked.commands()
    assert [one[0] for one in released] == ["check", "build"]
    assert all("--release" in one for one in released)


def test_a_run_needs_less_of_eastwest_than_a_fuzzing_campaign(asked: Asked) -> None:
    crate.build(asked.folder)
    check, build = asked.commands()
    assert "--no-default-features" in check and "--features" not in build
    # a complete library has a first build of its own
    for wanted in ({"complete": True}, {"release": True}):
        crate.build(asked.folder, **wanted)
        check, build = asked.commands()
        assert "--no-default-features" in check
        assert build[build.index("--features") + 1] == "complete"
    # a crate without these features is compiled with the features that it has
    manifest = asked.folder / "Cargo.toml"
    text = manifest.read_text()
    manifest.write_text(text[: text.index("[features]")])
    crate.build(asked.folder, complete=True)
    (build,) = asked.commands()
    assert not {"--features", "--no-default-features"} & set(build)


def test_a_type_error_ends_before_the_build(asked: Asked) -> None:
    (asked.folder / "src" / "lib.rs").write_text("wrong")
    with pytest.raises(MechanismError, match=r"does not compile \(cargo check\)") as failed:
        crate.build(asked.folder)
    assert "E0308" in failed.value.trace
    assert [one[0] for one in asked.commands()] == ["check"]
    # A crate that failed to build is checked again after a change.
    (asked.folder / "src" / "lib.rs").write_text("right")
    crate.build(asked.folder)
    assert [one[0] for one in asked.commands()] == ["check", "build"]


def test_the_library_of_another_crate_of_this_name_is_not_taken(asked: Asked) -> None:
    asked.folders = [Path("/elsewhere/mine")]
    crate.build(asked.folder)
    assert [one[0] for one in asked.commands()] == ["check", "build", "clean", "build"]


def test_a_folder_for_compiled_code_that_the_user_names_is_used(
    asked: Asked, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(away / "mine-too"))
    crate.build(asked.folder)
    assert {target(one) for one in asked.commands()} == {away / "mine-too"}


def test_the_environment_asks_for_full_optimisation_too(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, wanted in (("0", False), ("1", True)):
        monkeypatch.setenv(crate.RELEASE, value)
        crate_module = ew.mechanisms.load([asked.folder])[0]
        assert crate_module.sources[0]["profile"] == "development"  # The library tells its profile.
        assert all(("--release" in one) == wanted for one in asked.commands())


def test_a_flag_without_a_crate_is_refused() -> None:
    command = [sys.executable, "-m", "eastwest", "run", "first", "--with-release"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "needs --with" in refused.stderr


def test_a_crate_with_another_source_is_told_what_to_write(asked: Asked, away: Path) -> None:
    manifest = asked.folder / "Cargo.toml"
    text = manifest.read_text()
    manifest.write_text(text.replace(ROOT.as_posix(), "/nowhere"))
    with pytest.raises(ew.InputError, match="is absent; for the installed") as refused:
        crate.build(asked.folder)
    assert f'path = "{ROOT.as_posix()}/crates/bindings"' in str(refused.value)
    other = away / "other"
    (other / "crates" / "bindings").mkdir(parents=True)
    (other / "crates" / "bindings" / "Cargo.toml").touch()
    (other / "Cargo.toml").write_text('[workspace.package]\nversion = "99.0.0"\n')
    manifest.write_text(text.replace(ROOT.as_posix(), other.as_posix()))
    with pytest.raises(ew.InputError, match=r"is that of Eastwest 99\.0\.0; for the installed"):
        crate.build(asked.folder)
    assert asked.commands() == []
    # A manifest that cannot be parsed gets cargo's own error message.
    manifest.write_text("[package\neastwest-bindings")
    crate.build(asked.folder)
    assert [one[0] for one in asked.commands()] == ["check", "build"]


# The source in a wheel


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, away: Path) -> Path:
    """Return a package as installed from a wheel, whose files are read-only."""
    package = away / "site-packages" / "eastwest"
    shipped_source.main(package / "rust")
    monkeypatch.setattr(source, "_PACKAGE", package)
    monkeypatch.setattr(source, "SHIPPED", package / "rust")
    return package / "rust"


def test_a_wheel_has_the_source_that_crates_need(installed: Path, asked: Asked) -> None:
    assert source.folder() == installed
    made = new.write("from-wheel", Kind.congestion)
    manifest = (made.folder / "Cargo.toml").read_text()
    assert f'path = "{installed.as_posix()}/crates/bindings"' in manifest
    assert crate.source_of(made.folder) == installed
    # All crates on which the bindings depend are present, and no others.
    there = {path.parent.name for path in installed.glob("crates/*/Cargo.toml")}
    workspace = {path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")}
    assert workspace - there == {"extension"}
    assert not [*installed.glob("crates/*/tests"), *installed.rglob("target")]
    size = sum(path.stat().st_size for path in installed.rglob("*") if path.is_file())
    assert size < 8_000_000


def test_nothing_is_written_into_an_installation(installed: Path, asked: Asked) -> None:
    folders = [installed, *(path for path in installed.rglob("*") if path.is_dir())]
    before = {path: path.stat().st_mtime_ns for path in folders}
    made = new.write("from-wheel", Kind.queue)
    asked.folder = made.folder
    crate.build(made.folder)
    assert {path: path.stat().st_mtime_ns for path in folders} == before
    assert (source.compiled(installed) / "eastwest-built-dev").is_file()


def test_the_folder_of_compiled_code_has_the_hash_of_a_shipped_source(installed: Path) -> None:
    first = source.compiled(installed)
    assert first.name.startswith(f"{core.version()}-")
    file = installed / "crates" / "bindings" / "src" / "lib.rs"
    times = file.stat()
    file.write_text(file.read_text() + "// changed\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert source.compiled(installed) != first
    # The folder of a checkout stays the same: cargo finds out which files have changed.
    assert source.compiled(ROOT) == source.compiled(ROOT) != first


def test_a_named_source_comes_first(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASTWEST_SOURCE", str(ROOT))
    assert source.folder() == ROOT
    monkeypatch.setenv("EASTWEST_SOURCE", "/nowhere")
    assert source.folder() is None


@pytest.mark.parametrize(
    ("platform", "named", "place"),
    [
        ("linux", "", "home/.cache/eastwest/rust"),
        ("darwin", "", "home/Library/Caches/eastwest/rust"),
        ("darwin", "named", "named/eastwest/rust"),
    ],
)
def test_the_cache_is_where_the_system_has_caches(
    platform: str, named: str, place: str, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", str(away / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(away / named) if named else "")
    assert cache.folder("rust") == away / place
    # A relative path is invalid (XDG base directory specification), so it is ignored.
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.folder("rust").is_relative_to(away / "home")
