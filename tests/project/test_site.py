"""The documentation site builds, loads nothing from other servers, and is current.

It is built in strict mode: every page is in the navigation, and every link leads somewhere.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from PIL import Image

import eastwest as ew
import pictures
from browser import browser
from docs_site import ROOT, convert, outside
from reference import ATTRIBUTES, PAGE, RESULTS, attributes, page, results

pytestmark = pytest.mark.long

PYTHON = ROOT / "docs" / "reference" / "python.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, check=False, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    for page_built in ("index", "about", "reference/cli", "papers/eeon_ch5/index"):
        assert "<h1" in (site / f"{page_built}.html").read_text("utf-8"), page_built
    signature = (site / "reference" / "python.html").read_text("utf-8")
    assert "eastwest.run.run" in signature


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loading = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*>")
    for page_built in site.rglob("*.html"):
        assert loading.findall(page_built.read_text("utf-8")) == [], page_built
    for style in (site / "style").glob("*.css"):
        assert "url(" not in style.read_text("utf-8")


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(params=["disk", "server"])
def address(request: pytest.FixtureRequest, site: Path) -> Iterator[str]:
    """Return the address of the site: on disk, where its search has no worker, and on a server."""
    if request.param == "disk":
        yield f"{site.as_uri()}/"
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_a_reader_finds_a_page(address: str, tool: Callable[..., str], tmp_path: Path) -> None:
    with browser(tool("chromium"), tmp_path) as chromium:
        chromium.size(400, 800)
        page = "reference/scenario.html?q=synchronized%20reads"
        chromium.call("Page.navigate", url=f"{address}{page}")
        found = chromium.script("""
            new Promise(resolve => {
                const look = () => {
                    const hits = [...document.querySelectorAll(".md-search-result__link")]
                    if (hits.length) resolve(hits.map(hit => hit.href.split("?")[0]))
                    else setTimeout(look, 50)
                }
                look()
            })
        """)
        assert f"{address}mechanisms/incast.html" in found, found
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert chromium.script(overflow) <= 0
        assert all(a.startswith((address, "data:", "blob:")) for a in chromium.requests)
        assert chromium.complaints == []


def test_the_reference_of_the_command_line_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make reference"


def test_what_is_made_from_the_declared_tables_is_up_to_date() -> None:
    text = RESULTS.read_text(encoding="utf-8")
    assert results(text) == text, "run make reference"
    assert ATTRIBUTES.read_text(encoding="utf-8") == attributes(), "run make reference"


def test_the_reference_of_python_has_every_name() -> None:
    text = PYTHON.read_text(encoding="utf-8")
    assert [name for name in ew.__all__ if f"ew.{name}" not in text] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](../papers/x/README.md)", "[a](papers/x/index.md)"),
        ("[a](guide/errors.md#b)", "[a](guide/errors.md#b)"),
        ("[a](../README.md)", "[a](about.md)"),
        ("![a b](images/demo.png)", "![a b](images/demo.png)"),
        ("in [`crates`](../crates/sim) and [b](https://x.y)", "in `crates` and [b](https://x.y)"),
        ("`[a](../README.md)` [b](#c)", "`[a](../README.md)` [b](#c)"),
        ("```sh\n[a](../README.md)\n- b\n```", "```sh\n[a](../README.md)\n- b\n```"),
        ("text:\n- a\n- b\n  c\n- d\n1. e", "text:\n\n- a\n- b\n  c\n- d\n1. e"),
        ("text:\n1. a\n2. b", "text:\n\n1. a\n2. b"),
        ("1 − 2\nis -1\n10. x", "1 − 2\nis -1\n10. x"),
    ],
)
def test_pages_are_turned_into_those_of_the_site(text: str, expected: str) -> None:
    taken_in = {"README.md": "about.md", "papers/x/README.md": "papers/x/index.md"}
    assert convert(text, "index.md", taken_in) == expected


def test_links_from_pages_outside_docs() -> None:
    taken_in = {"CONTRIBUTING.md": "CONTRIBUTING.md", "papers/x/README.md": "papers/x/index.md"}
    text = "[a](../../docs/guide/errors.md) [b](../../CONTRIBUTING.md) [c](claims/t1.toml)"
    expected = "[a](../../guide/errors.md) [b](../../CONTRIBUTING.md) c"
    assert convert(text, "papers/x/index.md", taken_in) == expected


def test_studies_and_measurements_are_taken_in() -> None:
    addresses = outside()
    assert addresses["papers/eeon_ch5/README.md"] == "papers/eeon_ch5/index.md"
    assert addresses["CHANGELOG.md"] == "CHANGELOG.md"
    assert addresses["README.md"] == "about.md"
    assert any(name.startswith("benches/results/") for name in addresses)


def test_every_picture_has_the_commands_that_draw_it() -> None:
    listed = pictures.listed()
    there = {p.name for p in pictures.FOLDER.iterdir() if p.suffix != ".toml"}
    assert there == listed.keys()
    for name, entry in listed.items():
        assert entry["shows"], name
        assert "$OUT" in entry["commands"][-1], name


def test_every_picture_is_shown_and_described() -> None:
    shown = {}
    for page_shown in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for words, target in re.findall(r"!\[(.*?)\]\(([^)]+)\)", page_shown.read_text("utf-8")):
            shown[Path(target).name] = words
    assert pictures.listed().keys() <= shown.keys()
    assert all(shown.values()), "a picture without words for those who do not see it"


def test_a_picture_is_replaced_only_when_it_was_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    (tmp_path / "a.png").write_text("old")
    with pytest.raises(Exception, match="exit status 3"):
        pictures.draw("a.png", ["echo new > $OUT; exit 3"])
    with pytest.raises(FileNotFoundError):
        pictures.draw("a.png", ["echo new > $WORK/other"])
    assert (tmp_path / "a.png").read_text() == "old"
    new = tmp_path.parent / f"{tmp_path.name}-new.png"
    Image.new("RGB", (3, 2), "#123456").save(new)
    pictures.draw("a.png", [f"cp {new} $WORK/x", "mv $WORK/x $OUT"])
    with Image.open(tmp_path / "a.png") as drawn:
        assert drawn.convert("RGB").getpixel((2, 1)) == (0x12, 0x34, 0x56)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
