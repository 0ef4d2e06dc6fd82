"""Draws the pictures of the documentation again, each by the commands listed for it.

``docs/images/pictures.toml`` lists them. A picture is replaced only when all of its commands have
succeeded and have written it. Screenshots get a palette of 256 colours, as figures have.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from eastwest.plot.picture import with_palette

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"


def listed() -> dict[str, dict[str, Any]]:
    """Return pictures by file name, with their content and their commands."""
    return tomllib.loads((FOLDER / "pictures.toml").read_text(encoding="utf-8"))


def draw(name: str, commands: list[str]) -> None:
    """Draw one picture; raise the error of the command that failed."""
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as work:
        out = Path(work) / name
        environment = {**os.environ, "PATH": path, "WORK": work, "OUT": str(out)}
        for command in commands:
            print(f"$ {command}", flush=True)
            subprocess.run(["sh", "-ec", command], check=True, cwd=ROOT, env=environment)
        beside = FOLDER / f".{name}.new"
        beside.write_bytes(with_palette(out.read_bytes()))
        beside.replace(FOLDER / name)


def main(only: list[str]) -> None:
    """Draw all pictures, or the pictures named in ``only``."""
    pictures = listed()
    unknown = [name for name in only if name not in pictures]
    if unknown:
        sys.exit(f"no such picture: {', '.join(unknown)}; there are {', '.join(pictures)}")
    for name in only or pictures:
        draw(name, pictures[name]["commands"])


if __name__ == "__main__":
    main(sys.argv[1:])
