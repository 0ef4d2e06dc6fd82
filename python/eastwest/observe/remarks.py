"""Where a reader of spans is, and what it has to say of the span that it reads.

Functions far below the reader (attributes, links) find what they cannot keep as it was recorded.
They get a ``Remarks`` instead of the account, the name of the file and the number of the line.
"""

from __future__ import annotations

from eastwest.account import Account


class Remarks:
    """The account of one file, and the line that is being read."""

    def __init__(self, file: str, problems: Account) -> None:
        self.file = file
        self.problems = problems
        #: From 1; 0: the file as a whole, where a format has no lines.
        self.line = 0

    def note(self, reason: str, found: object = "", consequence: str = "", rows: int = 1) -> None:
        """Say something of ``rows`` spans, or of what they hold; they are kept."""
        text = str(found)[:60] if found != "" else ""
        self.problems.note(self.file, self.line, reason, text, rows, consequence)

    def change(self, reason: str, consequence: str, found: object = "", rows: int = 1) -> None:
        """Take ``rows`` spans with another meaning; raises ``InputError`` unless lossy."""
        text = str(found)[:60] if found != "" else ""
        self.problems.change(self.file, self.line, reason, consequence, text, rows)

    def bad(self, reason: str, found: str = "") -> None:
        """Leave a span out, or stop at it with ``InputError``."""
        self.problems.bad(
            self.file,
            self.line,
            reason,
            found,
            consequence="it is missing in its transaction, and spans below it become roots",
        )
