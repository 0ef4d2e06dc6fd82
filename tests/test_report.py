"""The page: self-contained, with nothing in it that came from a scenario as markup."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import numpy.typing as npt
import pytest

import eastwest as ew
from eastwest.core import Column
from eastwest.report import write_page
from eastwest.report.page import change
from fake_core import FakeCore, column

HOSTILE = "<script>alert(1)</script>$\\frac{&\"'</style>{{7*7}}"

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
    for tag, attributes in page.tags:
        assert tag not in {"script", "link", "iframe", "object", "embed", "base", "form"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in {"src", "href", "xlink:href"}:
                assert value is not None
                assert value.startswith(("#", "data:image/png;base64,")), (tag, value)
    assert not re.search(r"@import|url\((?!#)", text)
    policy = next(a for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    return page


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
    assert sum(tag == "figure" for tag, _ in page.tags) == 8
    assert len(text) < 1_000_000


def test_many_tasks_and_links_stay_below_a_megabyte(fake: FakeCore) -> None:
    fake.job_count, fake.hosts = 20_000, 1600
    text = page_of(ew.run("x.toml"))
    check_self_contained(text)
    assert len(text) < 1_000_000


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
    assert "nan" not in text.lower().split("<pre>")[0]


def test_a_comparison_shows_differences(fake: FakeCore) -> None:
    one = ew.run("x.toml")
    two = ew.run("x.toml", seed=2)
    text = page_of(one, two)
    page = check_self_contained(text)
    assert "fake, seed 1" in text
    assert "fake, seed 2" in text
    assert sum(tag == "figure" for tag, _ in page.tags) == 3
    assert text.count('class="wide"') == 1, "the odd picture has a line of its own"
    rows = re.findall(r"<tr><td>seed</td><td>(.*?)</td><td>(.*?)</td></tr>", text)
    assert rows == [("1", "2")]


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.2, "−80 %"), (1.05, "+5 %"), (2.5, "+150 %"), (57.5, "× 57.5")]
)
def test_changes_in_words(ratio: float, text: str) -> None:
    assert change(ratio) == text


def test_the_page_in_a_browser(result: ew.Result, tool: Callable[..., str], tmp_path: Path) -> None:
    browser = tool("chromium", "chromium-browser", "google-chrome")
    page = write_page([result])

    def shoot(name: str, *flags: str) -> tuple[npt.NDArray[np.float32], str]:
        picture = tmp_path / name
        done = subprocess.run(
            [
                browser,
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
                *("--no-first-run", "--disable-background-networking", "--disable-sync"),
                *("--disable-component-update", "--enable-logging=stderr", "--hide-scrollbars"),
                *(f"--user-data-dir={tmp_path / (name + '.profile')}", *flags),
                *(f"--screenshot={picture}", "--window-size=1200,2400", page.resolve().as_uri()),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return matplotlib.image.imread(picture), done.stderr

    light, log = shoot("light.png")
    dark, _ = shoot("dark.png", "--blink-settings=preferredColorScheme=0")
    assert ":CONSOLE" not in log, "the browser complained about the page"
    assert light.shape[:2] == (2400, 1200)
    assert light[..., :3].mean() > 0.85
    assert dark[..., :3].mean() < 0.3
    # Curves in the first series colour, in the middle of the page where the pictures are.
    blue = np.array([0x0B, 0x62, 0xA4]) / 255
    inside = light[700:, :, :3]
    assert (np.abs(inside - blue).max(axis=2) < 0.02).sum() > 500
