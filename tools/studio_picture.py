"""Takes a picture of the studio with the browser of the tests.

    python tools/studio_picture.py SCENARIO OUT [--run SETTING=VALUE ...] [--link NAME]
        [--flow NUMBER] [--packet BYTE] [--moment SHARE] [--top ID] [--dark]

The studio opens a shipped scenario and runs it once for each ``--run``, with this slider; an empty
``--run ""`` runs it unchanged. Then it selects a link, explains a flow or a packet of it, and shows
the fabric at a share of the run. ``--top`` scrolls to an element.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from eastwest.studio import Session

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import Browser, browser  # noqa: E402  lies with the tests

#: Script that waits until a condition holds; for ``format``.
_WAIT = "(async () => {{ while (!({})) await new Promise((done) => setTimeout(done, 50)); }})()"


def prepare(chrome: Browser, given: argparse.Namespace) -> None:
    """Make the page show what the arguments ask for."""
    chrome.script(_WAIT.format("window.eastwestStudio && eastwestStudio.numbers.length"))
    for setting in given.run:
        path, _, value = setting.partition("=")
        if path:
            chrome.script(
                f"""(() => {{
                  const path = {json.dumps(path)};
                  eastwestStudio.addSlider(path);
                  const slider = eastwestStudio.sliders.find((one) => one.path === path);
                  slider.entry.value = {json.dumps(value)};
                  slider.changed = () => {{}};
                  slider.type();
                }})()"""
            )
        chrome.script("eastwestStudio.run({})")
    if given.link:
        chrome.script(
            "eastwestStudio.live.choose(eastwestStudio.live.fabric.edges.findIndex("
            f"(edge) => edge.name === {json.dumps(given.link)}))"
        )
    if given.flow is not None:
        kind = "flow" if given.packet is None else "packet"
        id = given.flow if given.packet is None else f"{given.flow}@{given.packet}"
        chrome.script("eastwestStudio.stories.list('')")
        chrome.script(f"eastwestStudio.stories.explain('{kind}', {json.dumps(id)})")
    if given.moment is not None:
        chrome.script(
            "(() => { const moment = document.getElementById('moment');"
            f"moment.value = Math.round({given.moment} * moment.max);"
            "eastwestStudio.paintMoment(); })()"
        )
    chrome.script("document.activeElement.blur()")
    if given.top:
        chrome.script(f"document.getElementById({json.dumps(given.top)}).scrollIntoView()")
    chrome.script("new Promise((done) => setTimeout(done, 600))")


def main() -> None:
    """Read the command line and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("out", type=Path)
    parser.add_argument("--run", action="append", default=[])
    parser.add_argument("--link")
    parser.add_argument("--flow", type=int)
    parser.add_argument("--packet", type=int)
    parser.add_argument("--moment", type=float)
    parser.add_argument("--top")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, default=980)
    given = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("needs chromium")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        Session(Path(scratch), given.scenario) as session,
        browser(program, Path(scratch) / "profile", given.width, given.height) as chrome,
    ):
        served = threading.Thread(target=session.run)
        served.start()
        try:
            chrome.prefers("dark" if given.dark else "light")
            chrome.visit(session.address)
            prepare(chrome, given)
            clip = {"x": 0.0, "y": 0.0, "width": float(given.width), "height": float(given.height)}
            scroll = float(chrome.script("window.scrollY"))
            chrome.shoot(given.out, clip={**clip, "y": scroll})
        finally:
            session.stop()
            served.join()


if __name__ == "__main__":
    main()
