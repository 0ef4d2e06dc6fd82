"""Counts the lines of Rust code outside tests, and lists its largest objects.

    python tools/size.py                     each crate, and the sum
    python tools/size.py --against COMMIT    with the numbers of an older commit
    python tools/size.py --objects           structs of many fields, types whose impl is spread

A line of code is a line that holds more than a comment. Tests do not count: neither the folders
tests/ and benches/, nor a module under #[cfg(test)], inline or in a file of its own. All other Rust
files of crates/ count, examples and build scripts too.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
TEST_FOLDERS = {"tests", "benches"}
MOST_FIELDS = 15
MOST_FILES = 4

# Comments, strings and characters, which are removed before braces are counted.
_TOKEN = re.compile(
    r"""(?P<line>//[^\n]*)
    |(?P<block>/\*)
    |(?P<raw>\bb?r(?P<hash>\#*)".*?"(?P=hash))
    |(?P<string>b?"(?:\\.|[^"\\])*")
    |(?P<char>b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\\n])')""",
    re.VERBOSE | re.DOTALL,
)


# Matches the head of an `impl` of a type itself, not of a trait; the group is the type's name.
_IMPL = re.compile(
    r"^impl\b(?:<[^{]*?>)?\s+(?:\w+::)*(\w+)(?:<[^{]*>)?\s*(?:where[^{]*)?\{", re.MULTILINE
)


def bare(source: str) -> str:
    """Return `source` without comments and without the content of strings; lines remain."""
    out: list[str] = []
    at = 0
    while match := _TOKEN.search(source, at):
        out.append(source[at : match.start()])
        end = match.end()
        if match["block"]:
            depth = 1
            while depth and (edge := re.compile(r"/\*|\*/").search(source, end)):
                depth += 1 if edge[0] == "/*" else -1
                end = edge.end()
            out.append("\n" * source.count("\n", match.start(), end))
        elif match["line"]:
            pass
        else:
            # A line inside a string counts as a line of code.
            out.append("\n".join('""' for _ in match[0].split("\n")))
        at = end
    out.append(source[at:])
    return "".join(out)


def without_tests(code: str) -> tuple[str, set[str]]:
    """Return `code` without items under #[cfg(test)], and names of test modules in own files."""
    files: set[str] = set()
    out: list[str] = []
    at = 0
    for match in re.finditer(r"#!?\[cfg\((?:all\()?test\b[^\]]*\]\s*", code):
        if match.start() < at:
            continue
        out.append(code[at : match.start()])
        if match[0].startswith("#!"):
            return "".join(out), files
        at = match.end()
        if module := re.match(r"(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod (\w+);", code[at:]):
            files.add(module[1])
        depth = 0
        while at < len(code):
            letter = code[at]
            at += 1
            if letter in "{([":
                depth += 1
            elif letter in "})]":
                depth -= 1
                if depth == 0 and letter == "}":
                    break
            elif letter == ";" and depth == 0:
                break
    out.append(code[at:])
    return "".join(out), files


def lines_of(code: str) -> int:
    """Return the number of lines of code that has no comments."""
    return sum(1 for line in code.split("\n") if line.strip())


def sources(commit: str | None) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield path (from the root) and text of each Rust file of the work tree or of `commit`."""
    if commit is None:
        for path in sorted((ROOT / "crates").rglob("*.rs")):
            yield PurePosixPath(path.relative_to(ROOT).as_posix()), path.read_text()
        return
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "crates"], check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith(".rs"):
                held = tar.extractfile(member)
                assert held is not None
                yield PurePosixPath(member.name), held.read().decode()


def code(commit: str | None) -> dict[PurePosixPath, str]:
    """Return each file outside tests by its path, without comments and tests."""
    kept: dict[PurePosixPath, str] = {}
    tests: set[PurePosixPath] = set()
    for path, text in sources(commit):
        if TEST_FOLDERS & set(path.parts[:-1]):
            continue
        kept[path], names = without_tests(bare(text))
        home = path.parent if path.stem in {"mod", "lib", "main"} else path.parent / path.stem
        tests.update(home / name for name in names)
    return {
        path: text
        for path, text in kept.items()
        if path.with_suffix("") not in tests and not tests & set(path.parents)
    }


def by_crate(files: dict[PurePosixPath, str]) -> dict[str, int]:
    """Return the number of lines of each crate."""
    sums: dict[str, int] = defaultdict(int)
    for path, text in files.items():
        sums[path.parts[1]] += lines_of(text)
    return dict(sums)


def body(text: str, start: int) -> str:
    """Return the text between the first brace at or after `start` and its partner."""
    begin = text.index("{", start)
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin + 1 : at]
    return text[begin + 1 :]


Counted = list[tuple[int, str]]


def objects(files: dict[PurePosixPath, str]) -> tuple[Counted, Counted]:
    """Return structs of more than MOST_FIELDS fields, with their number of fields.

    The second part of the result has the types whose own `impl` is in more than MOST_FILES files,
    with the number of files.
    """
    large: list[tuple[int, str]] = []
    homes: dict[str, set[PurePosixPath]] = defaultdict(set)
    for path, text in files.items():
        crate = path.parts[1]
        for match in re.finditer(r"\bstruct (\w+)[^;{(]*\{", text):
            fields = re.findall(
                r"^\s*(?:pub(?:\([^)]*\))? )?(?:r#)?\w+\s*:(?!:)",
                body(text, match.start()),
                re.MULTILINE,
            )
            if len(fields) > MOST_FIELDS:
                large.append((len(fields), f"{crate}::{match[1]}"))
        for match in _IMPL.finditer(text):
            homes[f"{crate}::{match[1]}"].add(path)
    spread = [(len(paths), name) for name, paths in homes.items() if len(paths) > MOST_FILES]
    return sorted(large, reverse=True), sorted(spread, reverse=True)


def main() -> int:
    """Print the numbers or objects that the arguments ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--against", metavar="COMMIT", help="older commit to compare with")
    parser.add_argument("--objects", action="store_true", help="list large objects")
    asked = parser.parse_args()
    files = code(None)
    if asked.objects:
        large, spread = objects(files)
        print(f"structs of more than {MOST_FIELDS} fields:")
        for count, name in large:
            print(f"{count:5}  {name}")
        print(f"types whose impl lies in more than {MOST_FILES} files:")
        for count, name in spread:
            print(f"{count:5}  {name}")
        return 0
    now = by_crate(files)
    if asked.against is None:
        for crate, lines in sorted(now.items()):
            print(f"{crate:12}{lines:8}")
        print(f"{'all':12}{sum(now.values()):8}")
        return 0
    then = by_crate(code(asked.against))
    for crate in sorted(now | then):
        print(f"{crate:12}{then.get(crate, 0):8}{now.get(crate, 0):8}")
    before, after = sum(then.values()), sum(now.values())
    print(f"{'all':12}{before:8}{after:8}  {100 * (after - before) / before:+.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
