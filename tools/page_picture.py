"""Takes a picture of a page, or of some of its parts, with the browser of the tests.

    python tools/page_picture.py PAGE OUT [ID...] [--dark] [--height PX]

Without ids the picture shows the top of the page; with ids it shows the elements with these ids.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import browser  # noqa: E402  lies with the tests

_MARGIN = 12


def shoot(page: Path, out: Path, ids: list[str], dark: bool, width: int, height: int) -> None:
    """Draw the page in a window of this size, and write the picture."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("needs chromium")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        browser(program, Path(profile), width, height) as chrome,
    ):
        chrome.prefers("dark" if dark else "light")
        chrome.open(page)
        clip = {"x": 0.0, "y": 0.0, "width": float(width), "height": float(height)}
        if ids:
            boxes = chrome.script(
                f"{ids!r}.map(i => document.getElementById(i).getBoundingClientRect())"
                ".map(b => [b.left, b.top, b.right, b.bottom])"
            )
            left, top = (min(box[i] for box in boxes) - _MARGIN for i in (0, 1))
            right, bottom = (max(box[i] for box in boxes) + _MARGIN for i in (2, 3))
            clip = {"x": left, "y": top, "width": right - left, "height": bottom - top}
        chrome.shoot(out, clip=clip)


def main() -> None:
    """Read the command line and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=1000)
    given = parser.parse_args()
    shoot(given.page, given.out, given.ids, given.dark, given.width, given.height)


if __name__ == "__main__":
    main()
