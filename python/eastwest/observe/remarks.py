"""Remarks of a reader on the spans of a file, with the file's name and the current line.

Functions deep inside a reader (for attributes, links …) find values that cannot be stored as
recorded. The functions report these values to a ``Remarks`` object, which adds the name of the file
and the line number.
"""

from __future__ import annotations

from eastwest.account import Account


class Remarks:
    """Adds remarks to the account of an import, with the file and the current line."""

    def __init__(self, file: str, problems: Account) -> None:
        self.file = file
        self.problems = problems
        #: Number of the current line, from 1; 0 stands for the whole file if its format has no
        #: lines.
        self.line = 0

    def note(self, reason: str, found: object = "", consequence: str = "", rows: int = 1) -> None:
        """Report that ``rows`` spans, or parts of spans, have a remarkable value; the spans stay.

        ``reason`` says what was found, ``found`` is an example of a value, ``consequence`` says
        what it means for results.
        """
        text = str(found)[:60] if found != "" else ""
        self.problems.note(self.file, self.line, reason, text, rows, consequence)

    def change(self, reason: str, consequence: str, found: object = "", rows: int = 1) -> None:
        """Report that the meaning of ``rows`` spans changes; raise ``InputError`` unless lossy.

        ``reason`` says what was found, ``consequence`` what the spans become; ``found`` is an
        example of a value.
        """
        text = str(found)[:60] if found != "" else ""
        self.problems.change(self.file, self.line, reason, consequence, text, rows)

    def bad(self, reason: str, found: str = "") -> None:
        """Report a span that is left out, because of a wrong value ``found``.

        Raises ``InputError`` if the import must stop at damaged spans.
        """
        self.problems.bad(
            self.file,
            self.line,
            reason,
            found,
            consequence="the span is missing in its transaction, and spans below it become roots",
        )
