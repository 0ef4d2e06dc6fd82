"""Interrupts (Ctrl-C and SIGTERM) that wait until a step which must not be divided is done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
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

    # A signal that is ignored, or that ends the process without Python, stays as it is.
    before = {each: signal.getsignal(each) for each in _SIGNALS}
    before = {each: handler for each, handler in before.items() if callable(handler)}
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
