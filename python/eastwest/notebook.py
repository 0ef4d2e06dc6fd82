"""Progress bars in Jupyter notebooks.

The bars use the IPython of the notebook's kernel, which is no dependency of Eastwest.
"""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

from eastwest.units import clean

#: Wall time in s after which the progress bar first appears; shorter runs show no bar.
FIRST_S = 0.5
#: Minimum wall time in s between two updates of a bar.
EVERY_S = 0.25


def is_kernel() -> bool:
    """Whether this code runs in the kernel of a notebook; imports nothing."""
    if "ipykernel" not in sys.modules:
        return False
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_ipython() if get_ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Bar:
    """A progress bar below the cell of a notebook; it is removed at the end."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._told_s = time.monotonic() + FIRST_S - EVERY_S
        #: IPython's handle of the displayed bar, with which updates replace the bar; else None.
        self._output: Any = None

    def show(self, text: str, share: float | None, label: str = "") -> None:
        """Show a text and a bar for the share of the work that is done (0 to 1; None: unknown).

        A call less than ``EVERY_S`` after the last update has no effect. Without ``label``, the
        label of the bar is shown.
        """
        now_s = time.monotonic()
        if now_s - self._told_s < EVERY_S:
            return
        self._told_s = now_s
        self._update(bar_html(clean(label or self._label, 40), text, share))

    def close(self) -> None:
        """Remove the bar from the notebook."""
        if self._output is not None:
            self._update("")

    def _update(self, html: str) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415  there only in notebooks

        if self._output is None:
            self._output = display(HTML(html), display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._output.update(HTML(html))  # type: ignore[no-untyped-call]


def bar_html(label: str, text: str, share: float | None) -> str:
    """Return a label, a bar for ``share`` (0 to 1; None: unknown) and a text as HTML."""
    value = "" if share is None else f' value="{min(1.0, max(0.0, share)):.4f}"'
    return (
        f'<div style="font-family: sans-serif; font-size: 90%">{escape(label)} '
        f'<progress max="1"{value} style="width: 16em; vertical-align: middle"></progress> '
        f"{escape(text)}</div>"
    )
