"""Finds docstrings and doc comments whose first line does not say what a function returns or does.

    python tools/words.py            every place, as path:line: text
    python tools/words.py --count    the number of places in each folder

The rules are in docs/internals/style.md. A function is described by a sentence that begins with its
verb, so an article, a pronoun or a question word cannot come first. Some openings point to a text
that the reader does not see; they are wrong everywhere.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Openings that do not name what they describe. "What-if" is a term.
POINTING = re.compile(
    r"(?:Such|What(?!-)|So many|So much|The same|Of|Its?|They|Them|These|Those|That|…)\b"
)
#: Question words, which describe no function, class or module.
_ASKING = re.compile(r"(?:Who|How|Where|When|Why)\b(?!-)")
#: First words of phrases without a verb.
NOUNS = re.compile(
    r"(?:The|An?|What|How|Who|Where|When|Which|All|Each|Every|Any|No|None|Nothing|Something|One|"
    r"Everything|Everybody|Nobody|In|At|On|For|From|By|With|Without|After|Before|While|"
    r"Bytes|Packets|Numbers?|Names?|Shares?|Seconds|Rows|Columns|Values|Times?)\b"
)
#: A verb that ends the search for one: "The port sends", "A packet arrives".
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|can|may|must|will|would|needs?|[a-z]{2,}(?:es|[^s]s))\b"
)

Found = tuple[Path, int, str]


def rust(path: Path) -> Iterator[Found]:
    """Yield the wrong doc comments of a Rust file."""
    lines = path.read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        text = line.strip()
        if not text.startswith("/// ") or (number and lines[number - 1].strip().startswith("///")):
            continue
        first = text.removeprefix("/// ")
        if POINTING.match(first) or (_is_function(lines, number) and _is_phrase(first)):
            yield path, number + 1, first


def _is_function(lines: list[str], number: int) -> bool:
    """Whether the doc comment from this line on belongs to a function."""
    for line in lines[number:]:
        text = line.strip()
        if not text.startswith(("///", "#[", "//")):
            return bool(re.match(r"(?:pub(?:\([^)]*\))? )?(?:const |unsafe |async )*fn ", text))
    return False


def python(path: Path) -> Iterator[Found]:
    """Yield the wrong docstrings of a Python file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        first = (ast.get_docstring(node) or "").partition("\n")[0]
        is_phrase = (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not _is_value(node)
            and _is_phrase(first)
        )
        if POINTING.match(first) or _ASKING.match(first) or is_phrase:
            yield path, getattr(node, "lineno", 1), first


def _is_value(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is read like an attribute, so that a noun describes it."""
    names = [ast.unparse(each) for each in node.decorator_list]
    return any(
        name.rpartition(".")[2] in {"property", "cached_property", "fixture"} for name in names
    )


def _is_phrase(first: str) -> bool:
    """Whether a first line begins like a phrase and has no verb in its first sentence."""
    if not NOUNS.match(first):
        return False
    return not _FINITE.search(first) or first.startswith("Which ")


def places() -> Iterator[Found]:
    """Yield all wrong places of the project."""
    for path in sorted((ROOT / "crates").rglob("*.rs")):
        yield from rust(path)
    for folder in ("python", "tools", "papers", "benches"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from python(path)


def main(arguments: list[str]) -> int:
    """Print the wrong places, or their number by folder; return 1 where there are any."""
    found = list(places())
    if "--count" in arguments:
        counted = Counter("/".join(path.relative_to(ROOT).parts[:3]) for path, _, _ in found)
        for folder, number in counted.most_common():
            print(f"{number:5} {folder}")
    else:
        for path, line, text in found:
            print(f"{path.relative_to(ROOT)}:{line}: {text}")
    print(f"{len(found)} places", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
