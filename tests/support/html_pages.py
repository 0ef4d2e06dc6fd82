"""Checks HTML pages: no script or style from a scenario, nothing loaded from other servers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import eastwest as ew
from eastwest.core import Column
from eastwest.report import write_page

HOSTILE = "<script>alert(1)</script>$\\frac{&\"'</style>{{7*7}}\u2028\u2029<!--]]>\\"


VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Collects tags, and checks that they are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page_of(*results: ew.Result) -> str:
    return write_page(list(results)).read_text(encoding="utf-8")


def check_self_contained(text: str) -> Page:
    page = Page(text)
    scripts = [a for t, a in page.tags if t == "script"]
    assert [a.get("type") for a in scripts] == ["application/json", None]
    for tag, attributes in page.tags:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form", "img", "image"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in {"src", "style"}, (tag, name)
            if name in {"href", "xlink:href"}:
                assert value is not None
                assert value.startswith("#"), (tag, value)
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/2000/svg)", outside_texts(text))
    check_policy(text, page)
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        for name in ("aria-labelledby", "aria-describedby"):
            if name in attributes:
                assert attributes[name] in ids, (tag, attributes)
    data = json.loads(between(text, '<script type="application/json" id="data">', "</script>"))
    assert set(data["charts"]) <= set(ids)
    return page


def between(text: str, start: str, end: str) -> str:
    return text.split(start, 1)[1].split(end, 1)[0]


def outside_texts(text: str) -> str:
    """Return the page without its quotations of scenario and command."""
    return re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL)


def check_policy(text: str, page: Page) -> None:
    """Check that the page loads nothing, and has only Eastwest's own scripts and styles."""
    policy = next(a for t, a in page.tags if t == "meta" and "http-equiv" in a)["content"]
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    parts = {
        "style-src": between(text, "<style>", "</style>"),
        "script-src": between(text, "<script>", "</script>"),
    }
    hashes = {
        rule: f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"
        for rule, part in parts.items()
    }
    none = dict.fromkeys(("default-src", "base-uri", "form-action"), "'none'")
    assert rules == {**none, **hashes}


def replace_text(table: list[Column]) -> None:
    """Replace names that a scenario can choose by hostile ones."""
    for place, (name, dtype, data) in enumerate(table):
        if dtype == "str" and name in {"workload", "class", "name", "src", "dst"}:
            table[place] = (name, dtype, [HOSTILE + str(i % 3) for i in range(len(data))])
