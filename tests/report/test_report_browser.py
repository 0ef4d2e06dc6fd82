"""The page in a real browser: drawings, keys, and the accessibility tree of a screen reader."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import numpy.typing as npt
import pytest

import eastwest as ew
from browser import Browser, browser
from eastwest.report import draw, write_page, write_report
from fake_core import FakeCore, column
from hand_made import flow, folder
from html_pages import HOSTILE, replace_text
from swept import Values, swept

pytestmark = pytest.mark.long

#: Script that returns all elements that Tab reaches, in order, as a short text each.
FOCUSABLE = """[...document.querySelectorAll(
  'a[href], button, input, summary, [tabindex="0"]')].filter(e => e.checkVisibility())
  .map(e => e.tagName + '.' + (e.className || e.id || ''))"""


@pytest.fixture
def chrome(tool: Callable[..., str], tmp_path: Path) -> Iterator[Browser]:
    """Start a browser; at its end, check that it reported no problem and loaded only the page."""
    program = tool("chromium", "chromium-browser", "google-chrome")
    with browser(program, tmp_path / "profile") as started:
        yield started
        assert started.complaints == []
        assert {address.split(":")[0] for address in started.requests} <= {"file"}
        assert len(set(started.requests)) <= 2


@pytest.fixture
def page(result: ew.Result) -> Path:
    return write_page([result])


def pixels(chrome: Browser, out: Path) -> npt.NDArray[np.float32]:
    picture: npt.NDArray[np.float32] = matplotlib.image.imread(chrome.shoot(out, whole=True))
    return picture[..., :3]


def test_light_and_dark_by_preference_and_by_button(
    chrome: Browser, page: Path, tmp_path: Path
) -> None:
    chrome.prefers("light")
    chrome.open(page)
    light = pixels(chrome, tmp_path / "light.png")
    assert light.mean() > 0.85
    accent = np.array([0x0B, 0x5F, 0xA5]) / 255
    assert (np.abs(light - accent).max(axis=2) < 0.02).sum() > 2000, "curves in the first colour"
    chrome.prefers("dark")
    assert pixels(chrome, tmp_path / "dark.png").mean() < 0.25
    button = "document.getElementById('theme')"
    assert chrome.script(f"{button}.getAttribute('aria-label')") == "Switch to light colours"
    chrome.script(f"{button}.click()")
    assert pixels(chrome, tmp_path / "chosen.png").mean() > 0.85


def contrast(one: list[float], two: list[float]) -> float:
    """Return the contrast ratio of two colours, by the rule of WCAG 2."""

    def luminance(rgb: list[float]) -> float:
        parts = [v / 255 for v in rgb]
        linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_marks_have_contrast(chrome: Browser, page: Path, scheme: str) -> None:
    chrome.prefers(scheme)
    chrome.open(page)
    names = ["ink", "muted", "accent", "good", "look", "bad", *(f"s{n}" for n in range(6))]
    colours = chrome.script(
        f"""(() => {{
          const probe = document.body.appendChild(document.createElement('p'));
          const read = (name) => {{
            probe.style.color = 'var(--' + name + ')';
            return getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
          }};
          const found = Object.fromEntries({[*names, "page", "card"]!r}.map(n => [n, read(n)]));
          probe.remove();
          return found;
        }})()"""
    )
    for ground in ("page", "card"):
        for name in names:
            assert contrast(colours[name], colours[ground]) >= 4.5, (scheme, name, ground)


def test_a_screen_reader_finds_its_way(chrome: Browser, page: Path) -> None:
    chrome.open(page)
    nodes = chrome.accessible()
    roles = [node["role"] for node in nodes]
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert roles.count(landmark) == 1, landmark
    assert roles.count("region") >= 6
    levels = [node["level"] for node in nodes if node["role"] == "heading"]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels)), levels
    needs_name = {"button", "link", "slider", "checkbox", "image", "figure", "region"}
    nameless = [n for n in nodes if n["role"] in needs_name and not n["name"].strip()]
    assert nameless == []
    names = [node["name"] for node in nodes if node["role"] == "slider"]
    assert len(names) == len(set(names)) >= 10


def test_the_way_of_the_keyboard(chrome: Browser, page: Path) -> None:
    chrome.open(page)
    chrome.press("Tab")
    assert chrome.script("document.activeElement.className") == "skip"
    chrome.press("Enter")
    assert chrome.script("document.activeElement.id") == "main"
    chrome.open(page)
    reached = 0
    for _ in chrome.script(FOCUSABLE):
        chrome.press("Tab")
        reached += chrome.script(
            "document.activeElement !== document.body && "
            "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
        )
    assert reached == len(chrome.script(FOCUSABLE)), "all are reached, and show the focus"


def read_out(chrome: Browser, figure: str) -> str:
    return str(
        chrome.script(f"document.querySelector('#{figure} .plot').getAttribute('aria-valuetext')")
    )


def test_values_are_read_and_pictures_zoomed_by_keyboard(chrome: Browser, page: Path) -> None:
    chrome.open(page)
    chrome.script("document.querySelector('#throughput .plot').focus()")
    chrome.press("Home")
    first = read_out(chrome, "throughput")
    assert re.match(r"0 – .*: hosts to switches .*bit/s, leaves to spines .*bit/s", first)
    for _ in range(5):
        chrome.press("ArrowRight")
    assert read_out(chrome, "throughput") != first
    assert chrome.script("document.getElementById('zoomed').hidden") is True
    view = "document.querySelector('#{} .plot svg').getAttribute('viewBox')"
    whole = chrome.script(view.format("queues"))
    chrome.press("+")
    chrome.press("+")
    assert chrome.script("document.getElementById('zoomed').hidden") is False
    part = chrome.script(view.format("queues"))
    other = chrome.script(view.format("drops"))
    assert part.split()[:3] == other.split()[:3], "all pictures over time zoom together"
    assert float(part.split()[2]) == pytest.approx(float(whole.split()[2]) / 4, rel=0.01)
    chrome.press("Escape")
    assert chrome.script(view.format("queues")) == whole


def test_throughput_and_pauses_are_read_by_keyboard(chrome: Browser, tmp_path: Path) -> None:
    def sample(connection: int, ms: int) -> dict[str, Any]:
        row = {"time_s": ms / 1e3, "connection": connection, "stream": -1, "src": connection}
        return {**row, "dst": 3, "bytes": 125_000 // (connection + 1)}

    rows = [sample(connection, ms) for connection in range(3) for ms in range(1, 9)]
    pause = {"link": 7, "priority": 3, "began_s": 0.002, "until_s": 0.004, "ended": "released"}
    about = {"simulated_s": 0.008, "flow_samples": {"interval_s": 0.001}}
    tables: dict[str, Any] = {"flow_samples": rows, "pauses": [pause], "flows": [flow()]}
    chrome.open(write_page([folder(tmp_path / "result", tables, about)]))
    said = {}
    for name in ("stream-rates", "stream-fairness", "pauses"):
        chrome.script(f"document.querySelector('#{name} .plot').focus()")
        chrome.press("Home")
        said[name] = read_out(chrome, name)
    assert (
        "h0 → h3 (connection 0) 1 Gbit/s, h1 → h3 (connection 1) 500 Mbit/s" in said["stream-rates"]
    )
    # Jain's index: (1 + 1/2 + 1/3)² / 3 (1 + 1/4 + 1/9).
    assert said["stream-fairness"].endswith("Jain's index 0.823")
    assert "leaf0->h3" in said["pauses"]


def test_a_drag_zooms_and_a_series_can_be_switched_off(chrome: Browser, page: Path) -> None:
    chrome.open(page)
    chrome.script("document.getElementById('throughput').scrollIntoView({block: 'center'})")
    chrome.script("new Promise(r => setTimeout(r, 700))")
    box = chrome.script(
        "(b => [b.x, b.y, b.width])(document.querySelector('#throughput .plot')"
        ".getBoundingClientRect())"
    )
    y = box[1] + 30
    chrome.mouse("mouseMoved", box[0] + box[2] * 0.25, y)
    assert chrome.script("document.getElementById('tip').hidden") is False
    chrome.mouse("mousePressed", box[0] + box[2] * 0.25, y, pressed=True)
    chrome.mouse("mouseMoved", box[0] + box[2] * 0.5, y, pressed=True)
    chrome.mouse("mouseReleased", box[0] + box[2] * 0.5, y)
    view = chrome.script("document.querySelector('#jobs .plot svg').getAttribute('viewBox')")
    left, _, width, _ = (float(v) for v in view.split(" "))
    assert (left, width) == pytest.approx((250_000, 250_000), abs=2000)
    button = "document.querySelector('#throughput .legend button')"
    chrome.script(f"{button}.click()")
    assert chrome.script(f"{button}.getAttribute('aria-pressed')") == "false"
    hidden = (
        "getComputedStyle(document.querySelector('#throughput path[data-series=\"0\"]')).display"
    )
    assert chrome.script(hidden) == "none"


def test_the_fabric_over_time(chrome: Browser, page: Path) -> None:
    chrome.open(page)
    state = "[...document.querySelectorAll('#topology .edge')].map(e => e.className.baseVal)"
    busiest = "document.querySelector('#topology .now').textContent"
    chrome.script("document.querySelector('#topology input[type=range]').focus()")
    chrome.press("Home")
    first, listed = chrome.script(state), chrome.script(busiest)
    for _ in range(3):
        chrome.press("ArrowRight")
    assert chrome.script(state) != first
    assert chrome.script(busiest) != listed
    text = chrome.script(
        "document.querySelector('#topology input[type=range]').getAttribute('aria-valuetext')"
    )
    assert "–" in text
    chrome.script("document.querySelector('#topology .play').focus()")
    chrome.press(" ")
    before = chrome.script("document.querySelector('#topology input[type=range]').value")
    moved = chrome.script(
        "new Promise(r => setInterval(() => { const v = "
        "document.querySelector('#topology input[type=range]').value; "
        f"if (v !== '{before}') r(true); }}, 20))"
    )
    assert moved
    chrome.press(" ")
    assert chrome.script("document.querySelector('#topology .play').textContent") == "Play"


def test_slow_flows_can_be_sorted(chrome: Browser, page: Path) -> None:
    chrome.open(page)
    head = "[...document.querySelectorAll('.slow th')].find(t => t.textContent === 'size')"
    sizes = (
        "[...document.querySelectorAll('.slow tbody tr')].map(r => +r.children[2].dataset.value)"
    )
    chrome.script(f"{head}.querySelector('button').click()")
    assert chrome.script(sizes) == sorted(chrome.script(sizes), reverse=True)
    chrome.script(f"{head}.querySelector('button').click()")
    assert chrome.script(sizes) == sorted(chrome.script(sizes))
    assert chrome.script(f"{head}.getAttribute('aria-sort')") == "ascending"


def test_hostile_names_stay_text(
    chrome: Browser, fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.name = fake.job_name = HOSTILE
    inner = fake.run

    def hostile(*args: Any) -> Any:
        raw = inner(*args)
        for table in raw["tables"].values():
            replace_text(table)
        return raw

    monkeypatch.setattr(fake, "run", hostile)
    chrome.open(write_page([ew.run("x.toml")]))
    assert chrome.script("document.querySelectorAll('script').length") == 2
    assert chrome.script("document.querySelector('h1').textContent").startswith("<script>alert(1)")
    chrome.script("document.querySelector('#jobs .plot').focus()")
    chrome.press("Home")
    assert "<script>alert(1)" in read_out(chrome, "jobs")
    assert chrome.script("document.querySelectorAll('script').length") == 2


def test_without_scripts_and_printed_all_is_there(
    chrome: Browser, page: Path, tmp_path: Path
) -> None:
    chrome.prefers("dark", "print")
    chrome.scripts(False)
    chrome.open(page)
    printed = pixels(chrome, tmp_path / "print.png")
    assert printed.mean() > 0.85, "paper is light"
    accent = np.array([0x0B, 0x5F, 0xA5]) / 255
    assert (np.abs(printed - accent).max(axis=2) < 0.02).sum() > 2000, "curves are there"


#: Script that finds tables and drawings wider than their boxes, and labels outside the page.
CUT = """[...document.querySelectorAll('.scroll, .canvas')].filter(
    e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.trim())
  .concat([...document.querySelectorAll('svg text')].filter(e => e.checkVisibility() &&
    e.getBoundingClientRect().width > 0 && e.getBoundingClientRect().left < 0)
    .map(e => e.textContent))"""


@pytest.mark.parametrize("width", [360, 400, 1400])
def test_nothing_is_cut_on_any_screen(
    chrome: Browser, page: Path, tmp_path: Path, width: int
) -> None:
    values: dict[str, Values] = {
        f"workloads.w{n}.exchange_us.p99": [[10 + n, 11], [200, 210], [30, 4000]] for n in range(8)
    }
    limits = [["5 packets"], ["25 packets"], ["125 packets"]]
    sweep = swept(tmp_path / "sweep", [(["fabric.queue.limit"], limits)], values)
    other = write_page([ew.Result(page.parent), ew.run("x.toml", seed=2)])
    chrome.size(width, 900)
    for each in (page, write_report([sweep.path]), other):
        chrome.open(each)
        assert chrome.script("document.documentElement.scrollWidth") <= width, each
        assert chrome.script(CUT) == [], each
        assert set(chrome.requests) == {each.resolve().as_uri()}
        chrome.requests.clear()


def test_the_points_of_a_scatter_are_read_by_keyboard(chrome: Browser, tmp_path: Path) -> None:
    values: dict[str, Values] = {
        "flows.fct_us.p99": [[100, 101], [200, 201], [400, 401]],
        "throughput_bps": [[1e8, 1e8], [4e8, 4e8], [9e8, 9e8]],
    }
    limits = [["5 packets"], ["25 packets"], ["125 packets"]]
    sweep = swept(tmp_path / "sweep", [(["fabric.queue.limit"], limits)], values)
    chrome.open(write_report([sweep.path]))
    chrome.script("document.querySelector('#trade .plot').focus()")
    chrome.press("End")
    assert read_out(chrome, "trade").startswith(
        "limit = 125 packets: Throughput per host, of complete flows 900 Mbit/s"
    )
    chrome.script("document.querySelector('#metric-flows-fct_us-p99 .plot').focus()")
    chrome.press("Home")
    assert read_out(chrome, "metric-flows-fct_us-p99").startswith("5 packets: mean 100")


def test_a_large_fabric_is_drawn_in_groups(
    chrome: Browser, fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.hosts, fake.racks, fake.job_count = 1600, 40, 5000
    inner = fake.run

    def sampled(*args: Any) -> Any:
        raw = inner(*args)
        links = np.arange(2 * 1600 + 4 * 40)
        times = np.repeat(10.0 * np.arange(1, 101), links.size)
        carried = np.tile(links * 3000.0, 100)
        raw["tables"]["link_samples"] = [
            column("time_s", "f64", times),
            column("link", "u32", np.tile(links, 100)),
            column("bytes", "u64", carried),
            column("drops", "u32", carried * 0),
            column("marks", "u32", carried * 0),
        ]
        return raw

    monkeypatch.setattr(fake, "run", sampled)
    large = write_page([ew.run("x.toml")])
    assert large.stat().st_size < 2_000_000
    chrome.open(large)
    assert chrome.script("document.querySelectorAll('#topology .nodes > g').length") == 82
    assert chrome.script("document.querySelectorAll('#topology .edge').length") == 2 * (40 + 80)
    assert chrome.script("document.querySelectorAll('#link-heat .yaxis text').length") <= 80


def test_comparisons_have_names_and_no_complaints(chrome: Browser, fake: FakeCore) -> None:
    one, two = ew.run("x.toml"), ew.run("x.toml", seed=2)
    chrome.open(write_page([one, two]))
    nodes = chrome.accessible()
    assert [n["name"] for n in nodes if n["role"] == "heading" and n["level"] == 1] == [
        "2 results compared"
    ]
    chrome.script("document.querySelector('#flow-completion .plot').focus()")
    chrome.press("End")
    assert "fake, seed 1 100 %, fake, seed 2 100 %" in read_out(chrome, "flow-completion")


def test_the_page_and_its_script_write_numbers_alike(chrome: Browser) -> None:
    numbers = [0.0, *(m * 10.0**p for p in range(-9, 16) for m in (1.0, 1.234567, 9.987, 5.5))]
    units = [unit for unit in draw.WRITERS if unit != "nines"]
    ends = [2e-6, 0.0031, 0.9, 2.5, 170.0, 200.0, 14_387.1, 900_000.0]
    code = resources.files("eastwest.report").joinpath("templates/format.js").read_text("utf-8")
    axes = [(low, end - low) for end in ends for low in (0.0, end / 3)]
    found = chrome.script(
        f"""(() => {{ {code}
          return [
            {units}.map(unit => {numbers}.map(v => write(unit, v))),
            {[list(a) for a in axes]}.map(([low, width]) => timeStep(width, 6)),
            {ends}.map(end => [0, 1, 2, 3].map(n => {{
              const step = timeStep(end, 6);
              return clock(n * step, end, step);
            }})),
          ];
        }})()"""
    )
    assert found[0] == [[draw.WRITERS[unit](v) for v in numbers] for unit in units]
    assert found[1] == pytest.approx([draw.time_step(width, 6) for _, width in axes])
    assert found[2] == [
        [draw.clock(n * draw.time_step(end, 6), end) for n in range(4)] for end in ends
    ]
