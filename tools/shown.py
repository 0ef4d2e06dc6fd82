"""Runs the commands on a page and writes their output below them.

A page with ``<!-- output by tools/shown.py -->`` is a script: its ``sh`` blocks run one after the
other in an empty folder, and the ``text`` block after an ``sh`` block has its output. The arguments
are pages; without any, all pages are updated. A test checks that the pages are current.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARK = "<!-- output by tools/shown.py -->"
_BLOCK = re.compile(r"^```sh\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.M | re.S)


def pages() -> list[Path]:
    """Return the pages whose output this tool writes."""
    return [p for p in sorted((ROOT / "docs").rglob("*.md")) if MARK in p.read_text("utf-8")]


def renewed(page: Path) -> str:
    """Return the text of a page with the current output of its commands."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory(prefix="eastwest-shown-") as folder:

        def run(match: re.Match[str]) -> str:
            done = subprocess.run(
                ["/bin/sh", "-e", "-c", match["code"]],
                cwd=folder,
                env={**os.environ, "PATH": path, "COLUMNS": "100"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise SystemExit(f"{page}: {match['code']}failed\n{done.stderr}")
            if match["shown"] is None:
                return match[0]
            lines = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
            return f"```sh\n{match['code']}```\n\n```text\n{lines}```\n"

        return _BLOCK.sub(run, page.read_text("utf-8"))


def main() -> None:
    """Update the pages named on the command line, or all."""
    for page in [Path(name) for name in sys.argv[1:]] or pages():
        page.write_text(renewed(page), "utf-8")


if __name__ == "__main__":
    main()
