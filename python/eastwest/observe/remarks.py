"""Remarks of a reader on the spans of a file, with the file's name and the current line.

Functions deep inside a reader (attributes, links) find values that cannot be stored as recorded.
They get a ``Remarks`` object instead of the account, the name of the file and the line number.
"""

from __future__ import annotations

from eastwest.account import Account


class Remarks:
    """Adds remarks to the account of an import, with the file and the line that is being read."""

    def __init__(self, file: str, problems: Account) -> None:
        self.file = file
        self.problems = problems
        #: Line from 1; 0 means the whole file, where a format has no lines.
        self.line = 0

    def note(self, reason: str, found: object = "", consequence: str = "", rows: int = 1) -> None:
        """Report a remark on ``rows`` spans or parts of spans; the spans stay in the data.

        ``found`` is an example of a value, ``consequence`` what the remark means for results.
        """
        text = str(found)[:60] if found != "" else ""
        self.problems.note(self.file, self.line, reason, text, rows, consequence)

    def change(self, reason: str, consequence: str, found: object = "", rows: int = 1) -> None:
        """Report ``rows`` spans whose meaning changes; raises ``InputError`` unless lossy.

        ``consequence`` says what they become, ``found`` is an example of a value.
        """
        text = str(found)[:60] if found != "" else ""
        self.problems.change(self.file, self.line, reason, consequence, text, rows)

    def bad(self, reason: str, found: str = "") -> None:
        """Report a span that is left out.

        ``found`` is a wrong value of it. Raises ``InputError`` if damaged spans stop the import.
        """
        self.problems.bad(
            self.file,
            self.line,
            reason,
            found,
            consequence="the span is missing in its transaction, and spans below it become roots",
        )
