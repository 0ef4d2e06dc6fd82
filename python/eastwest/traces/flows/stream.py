"""Reading of a binary file in small pieces, with the position of the next byte."""

from __future__ import annotations

from eastwest.traces.source import Source


class Stream:
    """Decompressed bytes of a recorded file, read by ``take`` and ``peek``."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self._source = source
        self._held = b""
        self._used = 0
        self._before = 0

    @property
    def at(self) -> int:
        """Position of the next byte in the decompressed data, from 0."""
        return self._before + self._used

    @property
    def cut(self) -> str:
        """Reason why the data ends early, as in a truncated file; empty if nothing is missing."""
        return self._source.cut

    def take(self, length: int) -> bytes:
        """Return and consume the next ``length`` bytes; fewer only at the end of the file."""
        self._fill(length)
        piece = self._held[self._used : self._used + length]
        self._used += len(piece)
        return piece

    def peek(self, length: int) -> bytes:
        """Return, but do not consume, the next ``length`` bytes; fewer at the end of the file."""
        self._fill(length)
        return self._held[self._used : self._used + length]

    def _fill(self, length: int) -> None:
        """Read until ``length`` unconsumed bytes are in the buffer, or until the file ends."""
        if len(self._held) - self._used >= length:
            return
        pieces = [self._held[self._used :]]
        have = len(pieces[0])
        self._before += self._used
        self._used = 0
        while have < length and (piece := self._source.read()):
            pieces.append(piece)
            have += len(piece)
        self._held = b"".join(pieces)
