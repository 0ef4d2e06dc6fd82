"""The page: self-contained, with nothing in it that came from a scenario as markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import eastwest as ew
from eastwest.core import Column
from eastwest.report import write_page
from eastwest.report.compare import change
from fake_core import FakeCore, column

HOSTILE = "<script>alert(1)</script>$\\frac{&\"'</style>{{7*7}}\u2028\u2029<!--]]>\\"

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Collects tags, and checks that they close in order."""

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
    """Return the page without what it quotes: scenario and command."""
    return re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL)


def check_policy(text: str, page: Page) -> None:
    """Nothing may load, and nothing may run or style but what we put in."""
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


def test_the_page_says_what_happened(result: ew.Result) -> None:
    text = page_of(result)
    page = check_self_contained(text)
    for words in (
        "20 hosts and 4 switches, joined by 24 full-duplex cables",
        "hosts to switches 1 Gbit/s",
        "60 jobs (trace) with 240 maps and 120 reduces",
        "over-subscribed 2:1",
        "Half of the jobs finish within",
        "eastwest run results/fake-1/scenario.toml",
        "# resolved",
        result.digest,
    ):
        assert words in text, words
    figures = [a["id"] for tag, a in page.tags if tag == "figure"]
    assert figures == [
        *("running-tasks", "jobs", "tasks-by-host", "job-runtimes"),
        *("topology", "link-heat", "throughput", "queues", "drops", "link-utilisation"),
        *("flow-completion", "slowdown-by-size", "packet-latency"),
    ]
    assert len(text) < 1_000_000


def test_many_tasks_and_links_stay_below_two_megabytes(fake: FakeCore) -> None:
    fake.job_count, fake.hosts = 20_000, 1600
    text = page_of(ew.run("x.toml"))
    check_self_contained(text)
    assert len(text) < 2_000_000


def test_hostile_names_are_text(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.name = fake.job_name = HOSTILE
    inner = fake.run

    def hostile(*args: Any) -> Any:
        raw = inner(*args)
        raw["notes"] = [HOSTILE]
        for table in raw["tables"].values():
            replace_text(table)
        return raw

    monkeypatch.setattr(fake, "run", hostile)
    result = ew.run("x.toml")
    text = page_of(result)
    check_self_contained(text)
    assert "&lt;script&gt;alert(1)" in text
    assert "{{7*7}}" in text
    other = ew.run("x.toml", seed=2)
    check_self_contained(page_of(result, other))


def replace_text(table: list[Column]) -> None:
    """Turn names that a scenario can choose into hostile ones."""
    for place, (name, dtype, data) in enumerate(table):
        if dtype == "str" and name in {"workload", "class", "name", "src", "dst"}:
            table[place] = (name, dtype, [HOSTILE + str(i % 3) for i in range(len(data))])


def test_a_run_without_anything_has_a_page(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = fake.run

    def empty(*args: Any) -> Any:
        raw = inner(*args)
        for name, table in raw["tables"].items():
            raw["tables"][name] = [column(title, dtype, []) for title, dtype, _ in table]
        raw["summary_json"] = json.dumps({"scenario": "empty", "seed": 1, "digest": ""})
        return raw

    monkeypatch.setattr(fake, "run", empty)
    text = page_of(ew.run("x.toml"))
    check_self_contained(text)
    assert "No traffic was sent." in text


def test_unfinished_flows_do_not_break_the_page(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = fake.run

    def unfinished(*args: Any) -> Any:
        raw = inner(*args)
        for place, (name, dtype, data) in enumerate(raw["tables"]["flows"]):
            if name in {"finish_s", "fct_us", "slowdown"}:
                values = [float("nan")] * (len(data) // 8)
                raw["tables"]["flows"][place] = column(name, dtype, values)
        return raw

    monkeypatch.setattr(fake, "run", unfinished)
    text = page_of(ew.run("x.toml"))
    check_self_contained(text)
    shown = re.sub(r"<(script|style).*?</\1>|<pre.*?</pre>", "", text, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", shown.lower())


def test_a_comparison_shows_differences(fake: FakeCore) -> None:
    one = ew.run("x.toml")
    two = ew.run("x.toml", seed=2)
    text = page_of(one, two)
    page = check_self_contained(text)
    assert "fake, seed 1" in text
    assert "fake, seed 2" in text
    assert sum(tag == "figure" for tag, _ in page.tags) == 4
    assert "1 setting differs: seed (1 / 2)." in text
    rows = re.findall(r"<code>seed</code></th><td>(.*?)</td><td>(.*?)</td></tr>", text)
    assert rows == [("1", "2")]


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.2, "−80 %"), (1.05, "+5 %"), (2.5, "+150 %"), (57.5, "× 57.5"), (0.9997, "≈ 0 %")]
)
def test_changes_in_words(ratio: float, text: str) -> None:
    assert change(ratio) == text
