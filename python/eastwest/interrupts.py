"""Interrupts (Ctrl-C and SIGTERM): delayed until a step is done, and kept if Python loses them."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class FinishedInterrupt(KeyboardInterrupt):
    """Interrupt of a command whose result is complete; the text says where the result is."""


@contextlib.contextmanager
def delayed(done: str) -> Iterator[None]:
    """Delay interrupts until the end of the block.

    An interrupt then raises ``FinishedInterrupt`` with the text ``done``. If the block raises an
    exception, the interrupt is handled as before the block. Outside the main thread, which Python
    never interrupts, the block is run as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        seen.append(number)

    before = _handlers()
    finished = False
    try:
        for each in before:
            signal.signal(each, note)
        yield
        finished = True
    finally:
        # SIGINT is the first of the signals and restored last: its handler may raise at once.
        for each, handler in reversed(before.items()):
            signal.signal(each, handler)
        if seen and not finished:
            signal.raise_signal(seen[0])
    if seen:
        raise FinishedInterrupt(done)


class Kept:
    """Keeps interrupts that Python loses, so that a loop can raise them.

    Python discards an exception in a finaliser (``__del__``) or in a callback of the garbage
    collector. If a signal arrives there, its ``KeyboardInterrupt`` is lost, and the program
    continues.
    """

    def __init__(self) -> None:
        self._raised: KeyboardInterrupt | None = None
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {}

    def begin(self) -> None:
        """Keep interrupts from now on. Does nothing in threads other than the main one."""
        if self._before or threading.current_thread() is not threading.main_thread():
            return
        self._before = _handlers()
        for each in self._before:
            signal.signal(each, self._handle)

    def end(self) -> None:
        """Restore the handlers from before ``begin``, and forget interrupts."""
        before, self._before = self._before, {}
        for each, handler in reversed(before.items()):
            signal.signal(each, handler)
        self._raised = None

    def check(self) -> None:
        """Raise ``KeyboardInterrupt`` if a handler has raised it since ``begin``."""
        if self._raised is not None:
            raise KeyboardInterrupt(*self._raised.args)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._before[signal.Signals(number)](number, frame)
        except KeyboardInterrupt as error:
            self._raised = error
            raise


def _handlers() -> dict[signal.Signals, Callable[[int, FrameType | None], object]]:
    """Return Python's handlers of interrupts, SIGINT first.

    A signal that is ignored, or that ends the process without Python, is left out.
    """
    found = {each: signal.getsignal(each) for each in _SIGNALS}
    return {each: handler for each, handler in found.items() if callable(handler)}
