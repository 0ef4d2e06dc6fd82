"""Hooks of the documentation site (mkdocs.yml): they adapt the repository's pages to the site.

Pages are written in the Markdown of GitHub, and links in them lead to files of the repository. The
hooks add pages from outside ``docs/``, change links to these pages, turn links to source into plain
text, and put the blank line before lists that Python-Markdown needs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]

#: Pages outside ``docs/`` that the site also has, with their pictures.
_OUTSIDE = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "papers/**/*.md",
    "benches/results/*.md",
)
_PICTURES = {".png", ".svg"}
#: Pattern that matches the next link or code span, whichever begins first.
_LINK_OR_CODE = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)|`[^`]+`")
_ITEM = re.compile(r"\s*(?:[-*+]|1\.) ")


#: Weight of a folder's pages in the search, so that a mechanism's own page comes first.
_BOOSTS = {"mechanisms/": 4, "papers/": 0.01}


def outside() -> dict[str, str]:
    """Return the files outside ``docs/`` that the site has: path in the repository → address."""
    pages = [path for pattern in _OUTSIDE for path in sorted(ROOT.glob(pattern))]
    folders = sorted({page.parent for page in pages} - {ROOT})
    folders += sorted(path for path in ROOT.glob("papers/*/results/**") if path.is_dir())
    pictures = [
        path for folder in folders for path in sorted(folder.iterdir()) if path.suffix in _PICTURES
    ]
    names = [str(path.relative_to(ROOT)) for path in (*pages, *pictures)]
    return {name: _address(name) for name in names}


def _address(name: str) -> str:
    """Return the address of a file in the site; a README becomes the index page of its folder."""
    return "about.md" if name == "README.md" else re.sub(r"\bREADME\.md$", "index.md", name)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside ``docs/`` to the files of the site."""
    for source, address in outside().items():
        files.append(File.generated(config, address, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the Markdown of a repository page as the site needs it."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]
    for folder, boost in _BOOSTS.items():
        if page.file.src_uri.startswith(folder):
            page.meta["search"] = {"boost": boost}
    return convert(markdown, page.file.src_uri, outside())


def convert(markdown: str, address: str, taken_in: dict[str, str]) -> str:
    """Return the converted text of a page; ``address`` is the page's address in the site."""
    here = next((s for s, a in taken_in.items() if a == address), f"docs/{address}")

    def relinked(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        if target is None or re.match(r"[a-z]+:|#", target):
            return match.group()
        name, mark, anchor = target.partition("#")
        source = posixpath.normpath(posixpath.join(posixpath.dirname(here), name))
        found = taken_in.get(source)
        if found is None and source.startswith("docs/") and (ROOT / source).is_file():
            found = source.removeprefix("docs/")
        if found is None:  # The link leads to source code, which the site does not have.
            return label or ""
        relative = posixpath.relpath(found, posixpath.dirname(address) or ".")
        return f"{picture}[{label}]({relative}{mark}{anchor})"

    return "\n".join(
        line if code else _LINK_OR_CODE.sub(relinked, line) for line, code in _lines(markdown)
    )


def _lines(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield each line and whether it is code; a blank line is added before each list."""
    code, before = False, ""
    for line in markdown.split("\n"):
        fence = line.lstrip().startswith("```")
        if not code and _ITEM.match(line) and before and not _goes_on(before):
            yield "", False
        yield line, code or fence
        code ^= fence
        before = line


def _goes_on(before: str) -> bool:
    """Return whether a list continues after this line: an item, or its indented continuation."""
    return bool(_ITEM.match(before)) or before.startswith("  ") or before[0].isdigit()
