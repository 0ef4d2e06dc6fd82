"""Ctrl-C while the program ``eastwest`` loads its modules: the process ends without a traceback."""

from __future__ import annotations

import sys

#: The built-in part of the module ``signal``, which itself takes time to import.
_signal = __import__("_signal")


def is_program() -> bool:
    """Whether this process is the command ``eastwest`` or ``python -m eastwest``."""
    words = sys.orig_argv[1:3]
    return words == ["-m", "eastwest"] or any(word.endswith("/eastwest") for word in words[:1])


def end_silently() -> None:
    """Let SIGINT end the process at once, as long as Python's own handler is in force."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def raise_again() -> None:
    """Let SIGINT raise ``KeyboardInterrupt`` again, after ``end_silently``."""
    if _signal.getsignal(_signal.SIGINT) == _signal.SIG_DFL:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
