"""The studio in a real browser: editing, live view, sliders, explanations, keys, screen reader."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from browser import Browser, browser
from studio_client import Client, studio

pytestmark = pytest.mark.long

#: Six senders answer one receiver at once; a run takes some ten milliseconds.
SMALL = """# A small incast.
schema = 1
name = "small"
[fabric]
kind = "star"
hosts = 7
host_rate = "1 Gbit/s"
queue = { kind = "drop-tail", limit = "20 packets" }
[tcp]
min_rto = "10 ms"
initial_rto = "10 ms"
[[workload]]
name = "incast"
kind = "incast"
receiver = "h6"
rounds = 5
block_bytes = "64 kB"
request_bytes = "0 B"
"""
HOSTILE = '<img src=x onerror=\\"document.title=1\\">'


@pytest.fixture
def chrome(tool: Callable[..., str], tmp_path: Path) -> Iterator[Browser]:
    """Start a browser; at its end, check that it reported no problem and loaded only the page."""
    program = tool("chromium", "chromium-browser", "google-chrome")
    with browser(program, tmp_path / "profile", 1400, 1000) as started:
        yield started
        assert started.complaints == []
        places = {address.split("/api/")[0].split("?")[0] for address in started.requests}
        assert all(place.startswith(("http://127.0.0.1:", "blob:")) for place in places), places


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "small.toml").write_text(SMALL)
    with studio(folder, str(folder / "small.toml")) as served:
        yield served


def opened(chrome: Browser, client: Client) -> Browser:
    """Open the page and wait until the scenario is checked."""
    chrome.visit(client.session.address)
    until(chrome, "byTitle('No problems') || byTitle('problem')")
    return chrome


def until(chrome: Browser, condition: str, seconds: float = 60) -> None:
    """Wait until a condition in JavaScript holds."""
    title = "document.getElementById('problems-title').textContent"
    script = f"Boolean(((byTitle) => ({condition}))((text) => {title}.includes(text)))"
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if chrome.script(script):
            return
        time.sleep(0.05)
    raise AssertionError(f"{condition} does not hold after {seconds} s")


def run(chrome: Browser, number: int) -> None:
    """Press Run, and wait until run ``number`` has finished."""
    chrome.script("document.getElementById('go').click()")
    finished(chrome, number)


def finished(chrome: Browser, number: int) -> None:
    until(chrome, f"document.getElementById('clock').textContent.includes('Run {number} finished')")


def text(chrome: Browser, selector: str) -> str:
    return str(chrome.script(f"document.querySelector({selector!r}).textContent"))


def test_a_run_shows_frames_figures_and_the_digest_of_the_command_line(
    chrome: Browser, client: Client
) -> None:
    opened(chrome, client)
    run(chrome, 1)
    present = "eastwestStudio.runs.present"
    assert chrome.script(f"{present}.history.frames.length") > 50
    # All bytes of the frames are those of the links.
    ports = chrome.script(
        f"(() => {{ let sum = 0; for (const f of {present}.history.frames) "
        "for (const [bytes] of f.traffic.values()) sum += bytes; return sum; })()"
    )
    result = client.session.runs.result(1)
    assert ports == result.links["bytes"].sum()
    assert chrome.script(f"{present}.digest") == result.digest
    assert chrome.script(f"{present}.history.frames.at(-1).drops") == result.links["drops"].sum()
    assert "Mbit/s" in text(chrome, "#figures")
    curves = "[...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('.line').length)"
    assert chrome.script(curves)[:3] == [1, 1, 2]


def test_problems_appear_as_one_types_and_lead_to_their_line(
    chrome: Browser, client: Client
) -> None:
    opened(chrome, client)
    chrome.script(
        "eastwestStudio.editor.goTo(6); document.execCommand('insertText', false, 'hsots = 7')"
    )
    until(chrome, "byTitle('problem') && document.querySelector('#problems button')")
    assert "hosts" in text(chrome, "#problems")
    assert chrome.script("document.querySelectorAll('.line.bad').length") >= 1
    assert chrome.script("document.getElementById('go').disabled")
    chrome.script(
        "[...document.querySelectorAll('#problems button')]"
        ".find(b => b.textContent.startsWith('line 6')).click()"
    )
    line = chrome.script("eastwestStudio.editor.line")
    assert line == 6
    chrome.press("z", control=True)  # undo of the browser
    until(chrome, "byTitle('No problems')")


def test_completion_with_the_keyboard(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    chrome.script(
        "(() => { const area = document.getElementById('text'); area.focus();"
        "const at = area.value.indexOf('[tcp]') + 6; area.setSelectionRange(at, at); })()"
    )
    chrome.type("cong = 1\n")
    chrome.script(
        "(() => { const area = document.getElementById('text');"
        "const at = area.value.indexOf('cong =') + 4; area.setSelectionRange(at, at); })()"
    )
    chrome.press(" ", control=True)
    until(chrome, "!document.getElementById('completion').hidden")
    first = text(chrome, "#completion li b")
    assert first == "congestion"
    assert chrome.script("document.getElementById('text').getAttribute('aria-activedescendant')")
    chrome.press("Enter")
    # The equals sign that follows is not written a second time.
    assert "congestion = 1\n" in str(chrome.script("document.getElementById('text').value"))
    chrome.press("Escape")
    assert chrome.script("document.getElementById('completion').hidden")


def test_a_completion_list_belongs_to_one_place(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    hidden = "document.getElementById('completion').hidden"
    caret = (
        "(() => {{ const area = document.getElementById('text'); area.focus();"
        "const at = area.value.indexOf({!r}) + {}; area.setSelectionRange(at, at); }})()"
    )
    chrome.script(caret.format("[tcp]", 5))
    chrome.type("\ncong")
    until(chrome, f"!{hidden}")
    # The list closes when the cursor goes to another line.
    chrome.script(caret.format("[tcp]", 0))
    until(chrome, hidden)
    chrome.script(caret.format("cong", 4))
    chrome.press(" ", control=True)
    until(chrome, f"!{hidden}")
    assert text(chrome, "#completion li b") == "congestion"
    # A new line opens no list, in which a second Enter would accept an entry.
    chrome.script(caret.format("cong", 4))
    chrome.type(" = 1")
    chrome.script(
        "(() => { const real = window.fetch; window.paths = [];"
        "window.fetch = (path, ...rest) => {"
        "window.paths.push(path); return real(path, ...rest); }; })()"
    )
    chrome.type("\n")
    assert "/api/complete" not in chrome.script("window.paths")
    # Counted calls are seen at once: this edit asks for a list.
    chrome.type("con")
    assert "/api/complete" in chrome.script("window.paths")


def test_a_slider_reruns_and_keeps_ghosts(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    run(chrome, 1)
    chrome.script(
        "document.getElementById('slider-setting').value = 'fabric.queue.limit';"
        "document.getElementById('slider-add').click()"
    )
    slide = (
        "(() => {{ const range = eastwestStudio.sliders[0].range; range.value = {};"
        "range.dispatchEvent(new Event('input')); }})()"
    )
    chrome.script(slide.format(100))
    finished(chrome, 2)
    chrome.script(slide.format(900))
    finished(chrome, 3)
    sets = chrome.script("eastwestStudio.runs.all.map(run => run.set)")
    assert sets[0] == []
    assert sets[1][0][0] == sets[2][0][0] == "fabric.queue.limit"
    assert sets[1] != sets[2]
    assert chrome.script("document.querySelectorAll('.chart')[0].querySelectorAll('.ghost').length")
    # A larger buffer loses fewer packets.
    drops = chrome.script("eastwestStudio.runs.all.map(run => run.history.frames.at(-1).drops)")
    assert drops[2] < drops[1]
    chrome.script(
        "[...document.querySelectorAll('#runs-table input')].slice(0, 2).forEach(b => b.click());"
        "document.getElementById('compare').click()"
    )
    assert "fabric.queue.limit" in text(chrome, "#side")
    chrome.script(
        "[...document.querySelectorAll('.slider button')]"
        ".find(b => b.textContent.startsWith('Write')).click()"
    )
    written = str(chrome.script("document.getElementById('text').value"))
    assert f'limit = "{sets[2][0][1]}"' in written


def test_pause_holds_the_simulated_time_and_step_moves_it(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    chrome.script(
        "document.getElementById('speed').value = '0.01';document.getElementById('go').click()"
    )
    until(chrome, "eastwestStudio.runs.present && eastwestStudio.runs.present.history.end > 0.0005")
    chrome.script("document.getElementById('pause').click()")
    until(chrome, "document.getElementById('pause').textContent === 'Continue'")
    time.sleep(0.5)
    end = "eastwestStudio.runs.present.history.end"
    held = float(chrome.script(end))
    time.sleep(0.5)
    assert float(chrome.script(end)) == held
    chrome.script("document.getElementById('step').click()")
    until(chrome, f"{end} > {held}")
    time.sleep(0.5)
    assert float(chrome.script(end)) == pytest.approx(held + 1e-3, abs=1e-6)
    chrome.script("document.getElementById('stop').click()")
    until(chrome, "document.getElementById('clock').textContent.includes('stopped')")


def test_a_click_explains_and_a_packet_is_followed(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    run(chrome, 1)
    chrome.script("eastwestStudio.live.choose(eastwestStudio.live.fabric.edges.findIndex("
                  "e => e.name === 'switch0->h6'))")  # fmt: skip
    until(chrome, "document.getElementById('story').textContent.includes('Link switch0->h6')")
    chrome.script("document.getElementById('slow-link').click()")
    until(chrome, "document.querySelector('#flows tbody button')")
    chrome.script("document.querySelector('#flows tbody button').click()")
    until(chrome, "document.getElementById('packet-byte')")
    assert "Where the" in text(chrome, "#story")
    chrome.script("[...document.querySelectorAll('#story button')].at(-1).click()")
    until(chrome, "document.querySelector('#story .hops')")
    hops = chrome.script(
        "[...document.querySelectorAll('.hops tbody th')].map(cell => cell.textContent)"
    )
    assert hops[-1] == "switch0->h6"
    assert chrome.script("document.querySelectorAll('.packet').length") == 1


def test_the_fabric_is_edited_by_hand(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    before = chrome.script("eastwestStudio.live.fabric.hosts")
    chrome.script("document.getElementById('edit').click()")
    chrome.script(
        "[...document.querySelectorAll('#edit-panel button')]"
        ".find(b => b.textContent === 'Add host').click()"
    )
    until(chrome, f"eastwestStudio.live.fabric.hosts === {before + 1}")
    assert 'kind = "graph"' in str(chrome.script("document.getElementById('text').value"))
    chrome.script(
        "[...document.querySelectorAll('#edit-panel button')]"
        ".find(b => b.textContent === 'Undo').click()"
    )
    until(chrome, f"eastwestStudio.live.fabric.hosts === {before}")
    assert chrome.script("document.getElementById('text').value") == SMALL
    # The scenario file itself changes only when the user saves it.
    assert (client.folder / "small.toml").read_text() == SMALL
    chrome.script(
        "[...document.querySelectorAll('#edit-panel button')]"
        ".find(b => b.textContent === 'Add switch').click()"
    )
    until(chrome, "document.getElementById('text').value.includes('graph')")
    chrome.press("s", control=True)
    until(chrome, "document.getElementById('message').textContent.startsWith('Saved')")
    assert 'kind = "graph"' in (client.folder / "small.toml").read_text()


def test_watching_slowly_or_again_gives_the_same_curves(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    run(chrome, 1)
    chrome.script("document.getElementById('speed').value = '0.1'")
    chrome.script("document.getElementById('go').click()")
    until(chrome, "eastwestStudio.runs.present.number === 2")
    until(chrome, "eastwestStudio.runs.present.history.end > 0.001")
    chrome.script("document.getElementById('pause').click()")
    time.sleep(0.3)
    chrome.script("document.getElementById('step').click()")
    time.sleep(0.3)
    chrome.script("document.getElementById('pause').click()")
    chrome.script(
        "document.getElementById('speed').value = '';"
        "document.getElementById('speed').dispatchEvent(new Event('change'))"
    )
    finished(chrome, 2)
    curves = [
        chrome.script(
            f"eastwestStudio.runs.all[{n}].history.frames.map(f => [f.t, f.drops, f.flows,"
            "[...f.queues.values()].map(q => q[1]).sort().join()])"
        )
        for n in range(2)
    ]
    assert curves[0] == curves[1]


def test_a_reload_shows_the_runs_again(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    run(chrome, 1)
    before = text(chrome, "#figures-title")
    opened(chrome, client)
    until(chrome, "eastwestStudio.runs.all.length === 1 && eastwestStudio.runs.all[0].digest")
    until(chrome, "document.getElementById('figures-title').textContent.startsWith('Run 1')")
    assert text(chrome, "#figures-title") == before
    run(chrome, 2)


def test_hostile_texts_stay_text(chrome: Browser, tmp_path: Path) -> None:
    named = SMALL.replace('name = "incast"', f'name = "{HOSTILE}"\n"{HOSTILE}" = 1')
    (tmp_path / "small.toml").write_text(f"# {HOSTILE}\n" + named)
    (tmp_path / "<b>x.toml").write_text(SMALL)
    with studio(tmp_path, str(tmp_path / "small.toml")) as client:
        opened(chrome, client)
        hostile_texts_are_shown(chrome)


def hostile_texts_are_shown(chrome: Browser) -> None:
    until(chrome, "document.querySelectorAll('#problems li').length > 0")
    assert "onerror" in text(chrome, "#problems")
    assert "onerror" in text(chrome, ".paint")
    assert chrome.script("document.title") == "Studio · Eastwest"
    assert chrome.script("document.querySelectorAll('img, b.x, #files b').length") == 0


def test_exports_are_self_contained(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    run(chrome, 1)
    chrome.script(
        "window.kept = []; URL.createObjectURL = (blob) => { window.kept.push(blob);"
        "return 'blob:null/none'; }"
    )
    chrome.script("HTMLAnchorElement.prototype.click = () => {}")
    choose = (
        "(() => {{ const list = document.getElementById('export'); list.value = '{}';"
        "list.dispatchEvent(new Event('change')); }})()"
    )
    for number, kind in enumerate(("svg", "curves", "scenario")):
        chrome.script(choose.format(kind))
        until(chrome, f"window.kept.length > {number}")
    svg, curves, scenario = (str(chrome.script(f"window.kept[{n}].text()")) for n in range(3))
    for picture in (svg, curves):
        ElementTree.fromstring(picture)
        assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")
        assert "<script" not in picture
    assert scenario == SMALL
    chrome.script(choose.format("command"))
    until(chrome, "!document.getElementById('command').hidden")
    assert text(chrome, "#command").startswith("eastwest run small.toml")


def test_every_control_has_a_name_and_keys_reach_it(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    chrome.script("document.getElementById('text').focus()")
    chrome.press("Enter", control=True)
    finished(chrome, 1)
    roles = {"button", "combobox", "textbox", "slider", "checkbox", "link", "listbox"}
    named = [node for node in chrome.accessible() if node["role"] in roles]
    assert len(named) > 30
    assert [node for node in named if not node["name"].strip()] == []
    reached = set()
    chrome.script("document.body.tabIndex = -1; document.body.focus()")
    for _ in range(60):
        chrome.press("Tab")
        reached.add(chrome.script("document.activeElement.id"))
    assert {"files", "save", "text", "go", "speed", "link", "slow-all", "export"} <= reached


@pytest.mark.parametrize("width", [400, 768, 1280, 2000])
def test_no_width_needs_to_scroll_sideways(chrome: Browser, client: Client, width: int) -> None:
    chrome.size(width, 900)
    opened(chrome, client)
    run(chrome, 1)
    assert chrome.script("document.documentElement.scrollWidth") <= width


def test_colours_follow_the_preference(chrome: Browser, client: Client) -> None:
    chrome.prefers("dark")
    opened(chrome, client)
    background = "getComputedStyle(document.body).backgroundColor"
    dark = chrome.script(background)
    chrome.script("document.getElementById('theme').click()")
    assert chrome.script(background) != dark


def test_links_of_a_run_are_not_drawn_on_another_fabric(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    run(chrome, 1)
    rates = "document.querySelectorAll('.chart')[1].querySelectorAll('.line').length"
    assert "another fabric" not in text(chrome, "#link-now")
    assert chrome.script(rates) == 1
    chrome.script("eastwestStudio.editor.set(eastwestStudio.editor.text.replace('= 7', '= 8'))")
    # The text of the run ends at h6, so both fabrics have a link from the switch to h6.
    chrome.script("eastwestStudio.check()")
    until(chrome, "document.getElementById('link-now').textContent.includes('another fabric')")
    assert "Run 1 has another fabric" in text(chrome, "#link-now")
    assert chrome.script("document.querySelectorAll('#drawing .queues > *').length") == 0
    assert chrome.script(rates) == 0
    chrome.script("eastwestStudio.live.choose(0)")
    assert "Run 1 has another fabric" in text(chrome, "#story")
    run(chrome, 2)
    assert "another fabric" not in text(chrome, "#link-now")
    # The rate of a link decides the load: fabrics with other rates differ, too.
    chrome.script(
        "eastwestStudio.editor.set(eastwestStudio.editor.text.replace('= \"1 Gb', '= \"2 Gb'));"
        "eastwestStudio.check()"
    )
    until(chrome, "document.getElementById('link-now').textContent.includes('another fabric')")


def test_an_answer_about_a_run_is_not_shown_for_another_one(
    chrome: Browser, client: Client
) -> None:
    opened(chrome, client)
    run(chrome, 1)
    run(chrome, 2)
    chrome.script(
        "(() => { const s = eastwestStudio; window.answered = 0;"
        "const asked = [s.stories.explain('flow', 0), s.stories.list('')];"
        "s.runs.present = s.runs.find(1); s.select(s.runs.present);"
        "Promise.all(asked).then(() => { window.answered = 1; }); })()"
    )
    until(chrome, "window.answered === 1")
    assert text(chrome, "#story") == "" and text(chrome, "#flows-title") == ""
    chrome.script("eastwestStudio.stories.explain('flow', 0)")
    until(chrome, "document.querySelector('#story h3')")
    assert text(chrome, "#story h3").endswith(", run 1")


def test_more_seeds_are_those_of_one_scenario(chrome: Browser, client: Client) -> None:
    opened(chrome, client)
    run(chrome, 1)
    chrome.script("eastwestStudio.editor.set(eastwestStudio.editor.text.replace('= 5', '= 6'))")
    chrome.script("eastwestStudio.moreSeeds()")
    assert "not that of run 1" in text(chrome, "#message")
    assert len(client.get("/api/runs")) == 1
    chrome.script(
        "document.getElementById('seed').value = '9007199254740993'; eastwestStudio.run({})"
    )
    until(chrome, "!document.getElementById('failure').hidden")
    assert "at most 9007199254740991" in text(chrome, "#failure")
    assert len(client.get("/api/runs")) == 1
