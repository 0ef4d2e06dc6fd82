"""Progress of runs and sweeps as text, and progress bars for terminals and notebooks."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ParamSpec, Protocol

from eastwest import notebook
from eastwest.core import Progress, share_done
from eastwest.units import clean, count, span

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    from eastwest.sweep import State

#: Minimum share of a run, 0 to 1, from which its remaining time is estimated. Flows that begin
#: together finish late and together, so that an earlier estimate is not reliable.
TELLING_SHARE = 0.05
#: Separator between the parts of a progress text; the most important parts come first.
DOT = " · "
#: Length of the progress bar in characters, in a wide and in a narrow terminal, and number of
#: columns below which a terminal is narrow.
_BAR, _SHORT_BAR, _NARROW = 20, 10, 100
#: Minimum and maximum length of the label before a progress bar, and the length that a long label
#: must leave for the text after the bar, in characters.
_LABELS, _TEXT = (8, 30), 46

P = ParamSpec("P")


class Remaining:
    """Estimator of the remaining wall time of a run.

    The rate is measured over the last half of the wall time, so that the estimate follows a run
    that becomes slower or faster. A run resumed from a checkpoint begins with a share above 0.
    """

    def __init__(self) -> None:
        #: Samples of the run's progress: wall time in s, and share done (0 to 1).
        self._seen: deque[tuple[float, float]] = deque()
        self._began: tuple[float, float] | None = None

    def left_s(self, wall_s: float, share: float) -> float | None:
        """Return the estimated remaining wall time in s after ``wall_s`` s; None if too early.

        ``share`` is the share of the run that is done, 0 to 1. The first estimate needs
        ``TELLING_SHARE`` of the work.
        """
        if self._began is None:
            # A first report with a share and a wall time above 0 belongs to a resumed run.
            self._began = (wall_s, share) if share > TELLING_SHARE and wall_s > 1 else (0.0, 0.0)
            self._seen.append(self._began)
        began_s, began = self._began
        while len(self._seen) > 1 and self._seen[1][0] <= (wall_s + began_s) / 2:
            self._seen.popleft()
        since_s, since = self._seen[0]
        # Few samples suffice: at least 1 % of the wall time lies between two samples.
        if wall_s - self._seen[-1][0] > 0.01 * (wall_s - began_s):
            self._seen.append((wall_s, share))
        if share <= began or share - began < TELLING_SHARE * (1 - began) or wall_s <= began_s:
            return None
        if share <= since:  # no progress in the last half: use the mean rate of the whole run
            since_s, since = began_s, began
        return max(0.0, (1 - share) * (wall_s - since_s) / (share - since))


class RunWords:
    """Callable that returns a text about the progress of a run; it estimates the time left."""

    def __init__(self) -> None:
        self._remaining = Remaining()

    def left_s(self, progress: Progress) -> float | None:
        """Return the estimate of the remaining wall time in s, or None where it is unknown."""
        share = share_done(progress)
        return None if share is None else self._remaining.left_s(progress["wall_s"], share)

    def __call__(self, progress: Progress, /) -> tuple[str, float | None]:
        """Return (text about the progress of a run, share done from 0 to 1; None: unknown)."""
        return describe(progress, self.left_s(progress)), share_done(progress)


def describe(progress: Progress, left_s: float | None) -> str:
    """Return as text: simulated time, wall time, time left, jobs done, and packet-hops per second.

    ``left_s`` is the estimated remaining wall time in s; None: unknown.
    """
    wall_s = progress["wall_s"]
    parts = [f"{span(progress['simulated_s'])} simulated in {span(_rounded(wall_s))}"]
    if left_s is not None:
        parts.append(f"about {span(_rounded(left_s))} left")
    if progress["jobs_total"]:
        parts.append(f"{count(progress['jobs_done'])}/{count(progress['jobs_total'])} done")
    if wall_s > 0:
        parts.append(f"{count(round(progress['packet_hops'] / wall_s))} hops/s")
    return DOT.join(parts)


def _rounded(seconds: float) -> float:
    """Return a time in s, rounded to whole seconds if it is 10 s or more, else to tenths."""
    return round(seconds) if seconds >= 10 else round(seconds, 1)


class SweepWords:
    """Callable that returns a text about the progress of a sweep."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def __call__(self, state: State, /) -> tuple[str, float]:
        """Return (text about the progress of a sweep, share of its runs that ended, 0 to 1)."""
        took = span(_rounded(time.monotonic() - self._began_s))
        parts = [f"{count(state.done)}/{count(state.planned)} runs in {took}"]
        if state.left_s is not None:
            parts.append(f"about {span(_rounded(state.left_s))} left")
        if state.failed:
            parts.append(f"{count(state.failed)} failed")
        if state.reused:
            parts.append(f"{count(state.reused)} from the store")
        return DOT.join(parts), (state.done + state.failed) / max(1, state.planned)


class ClaimsWords:
    """Callable that returns a text about the progress of the runs of claims."""

    def __init__(self) -> None:
        self._words = SweepWords()

    def __call__(self, claim: str, runs: str, state: State, /) -> tuple[str, float]:
        """Return (text about the runs of a claim, share of these runs that ended, 0 to 1).

        ``claim`` is the id of the claim, ``runs`` the name of its group of runs.
        """
        text, share = self._words(state)
        return f"{clean(claim, 40)} {clean(runs, 20)}: {text}", share


class Bar:
    """A progress bar on a terminal; without a terminal it prints nothing.

    The bar is drawn only when progress is reported, so that no second thread takes time from the
    simulator.
    """

    def __init__(self, console: Console, label: str) -> None:
        self._console = console
        self._label = label
        bar = _BAR if console.width >= _NARROW else _SHORT_BAR
        #: Columns of the terminal that the bar and two blanks leave for label and text.
        self._room = console.width - bar - 2
        self._progress = _drawn(console, bar) if console.is_terminal else None
        if self._progress is not None:
            self._progress.add_task("", total=None, label="")

    def close(self) -> None:
        """Remove the bar from the terminal."""
        if self._progress is not None:
            self._progress.stop()

    def show(self, text: str, share: float | None, label: str = "") -> None:
        """Draw a bar for the share of the work that is done (0 to 1; None: unknown), and a text.

        Where the terminal is too narrow, the last parts of the text are left out.
        """
        if self._progress is None:
            return
        self._progress.start()
        total = None if share is None else 1.0
        least, most = _LABELS
        label = clean(label or self._label, max(least, min(most, self._room - _TEXT)))
        text = fitting(text, self._room - len(label))
        (task,) = self._progress.task_ids
        self._progress.update(task, description=text, total=total, completed=share, label=label)
        self._progress.refresh()


def fitting(text: str, width: int) -> str:
    """Return a progress text without its last parts, so that it fits into ``width`` characters."""
    while len(text) > width and DOT in text:
        text = text.rpartition(DOT)[0]
    return text


def _drawn(console: Console, bar: int) -> RichProgress:
    """Return a progress bar of ``bar`` characters, drawn by the package rich."""
    from rich.progress import BarColumn, TextColumn  # noqa: PLC0415
    from rich.progress import Progress as Drawn  # noqa: PLC0415

    return Drawn(
        TextColumn("{task.fields[label]}", markup=False),
        BarColumn(bar_width=bar),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        auto_refresh=False,
    )


class Shown(Protocol):
    """Progress bar of a terminal or of a notebook."""

    def show(self, text: str, share: float | None, label: str = "") -> None:
        """Show a text and the share of the work that is done (0 to 1; None: unknown)."""

    def close(self) -> None:
        """Remove the bar."""


@contextlib.contextmanager
def watched(
    progress: Callable[P, None] | bool | None,
    label: str,
    words: Callable[P, tuple[str, float | None]],
) -> Iterator[Callable[P, None]]:
    """Yield the progress callback that the argument ``progress`` of a Python function selects.

    A function is used as the callback. None shows a bar in a notebook, and nothing elsewhere. True
    shows a bar in a terminal, too. False shows nothing. ``label`` stands before the bar. ``words``
    returns (text, share of the work that is done) for the arguments of a progress report.
    """
    if callable(progress):
        yield progress
        return
    bar = _bar(progress, label)
    if bar is None:
        yield lambda *_, **__: None
        return

    def told(*report: P.args, **more: P.kwargs) -> None:
        bar.show(*words(*report, **more))

    try:
        yield told
    finally:
        bar.close()


def _bar(wanted: bool | None, label: str) -> Shown | None:
    """Return a progress bar for the notebook or the terminal; None where no bar is shown."""
    if wanted is False:
        return None
    if notebook.is_kernel():
        return notebook.Bar(label)
    if wanted and sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415  only where a bar is drawn

        return Bar(Console(stderr=True), label)
    return None
