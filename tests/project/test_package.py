"""Content of a source distribution, and so of a wheel: all needed files, and no others."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import shipped_papers
from eastwest.claims import record
from eastwest.claims.catalogue import find
from project_paths import PAPERS, ROOT

pytestmark = pytest.mark.slow

PACKAGE = ROOT / "python" / "eastwest"
#: Endings of files that belong to the package.
KNOWN = {".py", ".pyi", ".toml", ".tsv", ".gz", ".j2", ".js", ".css", ".rs", ".md", ".xml"}
UNNAMED = {"py.typed", "LICENSE", "gitignore"}


def sources() -> set[str]:
    """Return the files of the package, without those that Python and the build add."""
    return {
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the files of the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run(
        [maturin, "sdist", "--out", folder], cwd=ROOT, check=True, capture_output=True, timeout=300
    )
    (archive,) = folder.iterdir()
    with tarfile.open(archive) as stream:
        return {name.partition("/")[2] for name in stream.getnames()}


def test_the_package_has_no_stray_files() -> None:
    strays = {p for p in sources() if Path(p).suffix not in KNOWN and Path(p).name not in UNNAMED}
    assert not strays


def test_the_source_distribution_has_the_whole_package(packed: set[str]) -> None:
    assert {name for name in packed if name.startswith("python/")} == sources()
    for needed in ("scenarios/demo.toml", "data/swim/LICENSE", "report/templates/single.html.j2"):
        assert f"python/eastwest/{needed}" in packed


def test_the_source_distribution_has_what_the_build_needs(packed: set[str]) -> None:
    assert {"Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "pyproject.toml"} <= packed
    crates = {path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml")}
    assert {name.split("/")[1] for name in packed if name.startswith("crates/")} == crates


def test_the_source_distribution_has_nothing_else(packed: set[str]) -> None:
    top = {name.partition("/")[0] for name in packed}
    known = {"Cargo.toml", "Cargo.lock", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert top == {*known, "crates", "python"}
    assert not [name for name in packed if name.endswith((".so", ".pyc", ".parquet"))]


def test_packages_ship_all_claims_with_their_kept_verdicts(tmp_path: Path) -> None:
    shipped_papers.main(tmp_path)
    here, there = ([record.read(claim) for claim in find(each)] for each in (PAPERS, tmp_path))
    assert [(r.claim.id, r.claim.digest, r.content) for r in here] == [
        (r.claim.id, r.claim.digest, r.content) for r in there
    ]
    assert all(r.current for r in there if r.content)
    spaces = sorted(path.relative_to(PAPERS) for path in PAPERS.glob("optimize_*/*.toml"))
    assert spaces
    assert all((tmp_path / path).is_file() for path in spaces)
    assert not [*tmp_path.rglob("*.svg"), *tmp_path.rglob("*.png"), *tmp_path.rglob("*.parquet")]


def test_the_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    assert project["version"] == workspace["package"]["version"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_platform_that_is_documented_is_built() -> None:
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    page = (ROOT / "docs" / "internals" / "release.md").read_text()
    for target in (
        "x86_64-unknown-linux-gnu",
        "aarch64-unknown-linux-gnu",
        "x86_64-apple-darwin",
        "aarch64-apple-darwin",
    ):
        assert f"target: {target}" in workflow
        assert f"`{target}`" in page
    assert "tools/try_package.sh" in workflow
    assert shutil.which(str(ROOT / "tools" / "try_package.sh"))
