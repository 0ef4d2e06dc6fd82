"""Reads JSON documents as a stream: returns nested values before the whole file is parsed.

Files of spans grow to gigabytes. A reader walks down to the spans with ``fields`` and ``items`` and
reads each span with ``value``. Memory holds at most one value and one block of text.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from eastwest.account import Account
from eastwest.traces.source import Source
from eastwest.units import size

#: Maximum length of a value that is parsed as a whole, in characters.
MOST_VALUE = 16 << 20
_BLOCK = 1 << 20
_SPACE = " \t\r\n"


class JsonError(ValueError):
    """Error: the text of the file is not valid JSON at ``line``, counted from 1."""

    def __init__(self, line: int, reason: str, cut: bool = False) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason
        #: Whether the file ends within a document; the values before are usable.
        self.cut = cut


class JsonStream:
    """Reader of the JSON documents of a file, one after the other."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._scan = json.JSONDecoder(parse_constant=_no_number).raw_decode
        self._text = ""
        self._at = 0
        self._lines = 1
        #: Offset in ``_text`` up to which line feeds are already counted for ``line``.
        self._counted = 0
        self._ended = False
        if source.peek(3) == codecs.BOM_UTF8:
            source.read(3)

    @property
    def line(self) -> int:
        """Number of the line that is being read, from 1."""
        self._lines += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._lines

    def more(self) -> bool:
        """Whether another document follows; skips the separators before it."""
        return self._peek(_SPACE + ",\x1e") != ""

    def skip_line(self) -> bool:
        """Skip the rest of the current line; return False if the file ends first."""
        while True:
            end = self._text.find("\n", self._at)
            if end >= 0:
                self._at = end + 1
                return True
            self._at = len(self._text)
            if not self._fill():
                return False

    def fields(self) -> Iterator[str]:
        """Yield the keys of the next value, an object; read each value before the next key."""
        self._expect("{", "an object")
        first = True
        while self._peek() != "}":
            if not first:
                self._expect(",", "a comma")
            first = False
            if self._peek() != '"':
                self._wrong("a key is expected")
            key = self.value()
            self._expect(":", "a colon")
            yield key
        self._at += 1

    def items(self) -> Iterator[None]:
        """Yield None before each item of the next value, an array; then read the item."""
        self._expect("[", "an array")
        first = True
        while self._peek() != "]":
            if not first:
                self._expect(",", "a comma")
            first = False
            yield None
        self._at += 1

    def null(self) -> bool:
        """Return whether the next value is null; a null is read, any other value is not."""
        if self._peek() != "n":
            return False
        if self.value() is not None:
            self._wrong("a value is expected")
        return True

    def value(self) -> Any:
        """Read and return the next value with all values in it, up to ``MOST_VALUE`` characters."""
        self._peek()
        while True:
            try:
                found, end = self._scan(self._text, self._at)
            except RecursionError:
                self._wrong("is nested too deeply")
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos > len(self._text) - 16
                if self._ended or not cut:
                    self._wrong(error.msg.lower(), cut)
            except ValueError as error:
                self._wrong(str(error).lower())
            else:
                # A number that ends with the block may have more digits in the next block.
                if end < len(self._text) or self._ended or isinstance(found, (dict, list, str)):
                    self._at = end
                    return found
            if len(self._text) - self._at > MOST_VALUE:
                self._wrong(f"a value is longer than {size(MOST_VALUE)}")
            if not self._fill():
                self._ended = True

    def _peek(self, spaces: str = _SPACE) -> str:
        """Skip characters of ``spaces``; return the next character without reading it.

        The result is empty at the end of the file.
        """
        while True:
            text, at = self._text, self._at
            if at < len(text) and text[at] not in spaces:
                return text[at]
            while at < len(text) and text[at] in spaces:
                at += 1
            self._at = at
            if at < len(text):
                return text[at]
            if not self._fill():
                self._ended = True
                return ""

    def _expect(self, sign: str, what: str) -> None:
        if self._peek() != sign:
            self._wrong(f"{what} is expected")
        self._at += 1

    def _fill(self) -> bool:
        block = self._source.read(_BLOCK)
        text = self._decode(block, final=not block)
        if not block and not text:
            return False
        self._lines += self._text.count("\n", self._counted, self._at)
        self._text = self._text[self._at :] + text
        self._at = self._counted = 0
        return True

    def _wrong(self, reason: str, cut: bool = False) -> NoReturn:
        if self._ended and (cut or self._at >= len(self._text.rstrip(_SPACE))):
            raise JsonError(self.line, "the file ends within a document", True)
        raise JsonError(self.line, reason)


def read_documents(
    source: Source, problems: Account, document: Callable[[JsonStream], None]
) -> None:
    """Call ``document`` for each JSON document of the file ``source``.

    ``document`` reads one document from the stream. Invalid JSON is reported to ``problems``, the
    account of the import, and reading continues on the next line.
    """
    stream = JsonStream(source)
    while stream.more():
        try:
            document(stream)
        except JsonError as error:
            reason = f"is not JSON: {error.reason}"
            if error.cut:
                problems.broken(source.name, error.line, reason)
                break
            problems.bad(source.name, error.line, reason)
            if not stream.skip_line():
                break
    problems.end(source.name, stream.line, source.cut)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that JSON allows")
