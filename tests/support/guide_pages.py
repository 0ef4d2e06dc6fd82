"""Runs the commands on a page of the guide in a folder that has the page's files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_BLOCK = re.compile(r"^```sh\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.M | re.S)


def renewed(page: Path, folder: Path) -> str:
    """Return the text of a page with the output that its commands print in a folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

    def run(match: re.Match[str]) -> str:
        done = subprocess.run(
            ["/bin/sh", "-e", "-c", match["code"]],
            cwd=folder,
            env={**os.environ, "PATH": path, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{match['code']}{done.stderr}"
        if match["shown"] is None:
            return match[0]
        lines = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
        return f"```sh\n{match['code']}```\n\n```text\n{lines}```\n"

    return _BLOCK.sub(run, page.read_text("utf-8"))
