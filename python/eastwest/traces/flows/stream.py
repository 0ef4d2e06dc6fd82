"""Binary file that is read in small pieces, with the position of the next byte."""

from __future__ import annotations

from eastwest.traces.source import Source


class Stream:
    """Bytes of a source: ``take`` and ``peek`` return fewer bytes only at its end."""

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
        """Reason why the data ends early, as in a truncated file; empty if it is complete."""
        return self._source.cut

    def take(self, length: int) -> bytes:
        """Return the next ``length`` bytes; fewer only at the end of the source."""
        self._fill(length)
        piece = self._held[self._used : self._used + length]
        self._used += len(piece)
        return piece

    def peek(self, length: int) -> bytes:
        """Return the next ``length`` bytes without consuming them; fewer only at the end."""
        self._fill(length)
        return self._held[self._used : self._used + length]

    def _fill(self, length: int) -> None:
        """Read from the source until ``length`` bytes are in the buffer, or the source ends."""
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
