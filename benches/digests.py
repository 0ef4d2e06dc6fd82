"""Hashes the results of many runs, and compares them with the committed hashes.

    python benches/digests.py [--write] [--lines FOLDER] [PART ...]

Parts:

- ``scenarios``: each shipped scenario on a line of its own.
- ``generated``: 1,000 generated scenarios of the campaign in ``crates/fuzz``, in groups of 50.
- ``fabrics``: 3,000 random fabrics under PFC, in groups of 50.
- ``claims``: all claims in quick runs: the measured values of each study.

Without a part, all parts are compared. A commit that changes no result leaves
``benches/digests.txt`` as it is. The exit code is 1 if a hash differs. ``--write`` replaces the
hashes of the parts. ``--lines`` also writes each part's single lines into a folder: comparing the
folders of two commits shows which run of a group differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from eastwest.files import write_whole

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "benches" / "digests.txt"
GROUP = 50


def short(lines: Iterable[str]) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of some lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def output(command: list[str], **environment: str) -> str:
    """Run a command in the repository's folder and return what it prints."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ends with exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def example(*arguments: str) -> list[str]:
    """Return the lines that ``crates/fuzz/examples/digests.rs`` prints for these arguments."""
    cargo = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "eastwest-fuzz"]
    return output([*cargo, "--example", "digests", "--", *arguments]).splitlines()


def scenarios() -> list[str]:
    """Return a line ``file PATH HASH`` for each shipped scenario."""
    folder = ROOT / "python" / "eastwest" / "scenarios"
    files = sorted(str(file.relative_to(ROOT)) for file in folder.glob("*.toml"))
    return example("files", *files)


def generated() -> list[str]:
    """Return a line ``case NUMBER TEXT-HASH HASH`` for each generated scenario."""
    return example("generated", "1000")


def fabrics() -> list[str]:
    """Return a line ``fabric NUMBER DIGEST`` for each random fabric."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "digests"
        cargo = ["cargo", "test", "--quiet", "--release", "--locked", "-p", "eastwest-sim"]
        name = "in_any_fabric_every_frame_arrives_or_a_deadlock_is_named_with_its_cycle"
        output(
            [*cargo, "--test", "lossless", name],
            EASTWEST_CASES="3000",
            EASTWEST_DIGESTS=str(file),
        )
        return file.read_text().splitlines()


def claims() -> list[str]:
    """Return a line ``claim ID VALUES`` for each claim, run quick with an empty store."""
    with tempfile.TemporaryDirectory() as store:
        command = [
            sys.executable,
            "-m",
            "eastwest",
            "claims",
            "--quick",
            "--json",
            "--store",
            store,
        ]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)} ends with exit code {done.returncode}")
    return [
        f"claim {claim['id']} {json.dumps([claim['metrics'], claim['explanations']])}"
        for claim in json.loads(done.stdout)
    ]


def groups(lines: list[str]) -> dict[str, str]:
    """Return the name and hash of each group of 50 numbered lines."""
    found = {}
    for first in range(0, len(lines), GROUP):
        group = lines[first : first + GROUP]
        found[f"{group[0].split()[0]} {first}-{first + len(group) - 1}"] = short(group)
    return found


def singles(lines: list[str]) -> dict[str, str]:
    """Return the name and hash of each line; a line has a kind, a name, and the text to hash."""
    return {
        " ".join(line.split(maxsplit=2)[:2]): short([line.split(maxsplit=2)[2]]) for line in lines
    }


PARTS: dict[str, tuple[Callable[[], list[str]], Callable[[list[str]], dict[str, str]]]] = {
    "scenarios": (scenarios, singles),
    "generated": (generated, groups),
    "fabrics": (fabrics, groups),
    "claims": (claims, singles),
}


def read() -> dict[str, dict[str, str]]:
    """Return the committed hashes: part → name → hash."""
    kept: dict[str, dict[str, str]] = {part: {} for part in PARTS}
    for line in KEPT.read_text().splitlines() if KEPT.exists() else []:
        part, name, digest = line.split("\t")
        kept[part][name] = digest
    return kept


def main() -> None:
    """Compare the hashes of the chosen parts with the committed ones, or write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--lines", type=Path)
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    kept = read()
    equal = True
    for part in arguments.parts or PARTS:
        run, hashed = PARTS[part]
        lines = run()
        if arguments.lines:
            arguments.lines.mkdir(parents=True, exist_ok=True)
            write_whole(arguments.lines / f"{part}.txt", ("\n".join(lines) + "\n").encode())
        found = hashed(lines)
        if arguments.write:
            kept[part] = found
            print(f"{part}: {len(found)} hashes written")
            continue
        differing = [name for name in kept[part] | found if kept[part].get(name) != found.get(name)]
        equal &= not differing
        print(f"{part}: {len(found)} hashes, {len(differing)} differ")
        for name in differing:
            was, now = (hashes.get(name, "missing") for hashes in (kept[part], found))
            print(f"  {name}: {was} committed, {now}")
    if arguments.write:
        rows = [f"{part}\t{name}\t{digest}" for part in kept for name, digest in kept[part].items()]
        write_whole(KEPT, ("\n".join(rows) + "\n").encode())
    sys.exit(not equal)


if __name__ == "__main__":
    main()
