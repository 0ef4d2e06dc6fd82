"""Progress bars of commands; they are shown on standard error if it is a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.console import Console

from eastwest import core
from eastwest.progress import Bar as Terminal
from eastwest.progress import ClaimsWords, RunWords, SweepWords
from eastwest.run import peak_rss_mb
from eastwest.units import clean, percent, size, span

if TYPE_CHECKING:
    from eastwest.sweep import State

#: Factor by which the elapsed wall time and the estimated total wall time of a run must both change
#: before another line is printed.
_REVISED = 1.5


class Bar(Terminal):
    """Progress bar on a terminal during a ``with`` block; without a terminal nothing is printed."""

    def __enter__(self) -> Self:
        return self  # the first report draws the bar: a question to the user may come before

    def __exit__(self, *error: object) -> None:
        self.close()


class RunBar(Bar):
    """The progress bar of one simulation.

    Without a terminal and with ``estimate``, the bar prints one line with the remaining time, as
    soon as an estimate exists, but not in the first second. The bar prints another line when the
    elapsed wall time and the estimated total wall time have both changed by a factor of 1.5 or
    more.
    """

    def __init__(self, console: Console, label: str, estimate: bool = False) -> None:
        super().__init__(console, label)
        self._words = RunWords()
        self._estimate = estimate and not console.is_terminal
        #: (elapsed wall time, estimated total wall time) in s at the last printed line, or None.
        self._told_s: tuple[float, float] | None = None

    def __call__(self, progress: core.Progress) -> None:
        """Show the progress of the simulation."""
        text, share = self._words(progress)
        self.show(text, share)
        if self._estimate and share is not None:
            self._revise(progress, share)

    def _revise(self, progress: core.Progress, share: float) -> None:
        """Print the estimate of the remaining time if it has changed enough since the last line."""
        wall_s, left_s = progress["wall_s"], self._words.left_s(progress)
        if left_s is None or wall_s < 1:
            return
        whole_s = wall_s + left_s
        if self._told_s is not None:
            told_at_s, told_s = self._told_s
            changed = max(whole_s / told_s, told_s / whole_s)
            if wall_s < _REVISED * told_at_s or changed < _REVISED:
                return
        self._told_s = wall_s, whole_s
        done = f"{percent(round(share, 2))} done in {span(round(wall_s, 1))}"
        memory = f"{size(peak_rss_mb() * 1e6)} or more of memory"
        left = f"about {span(float(f'{left_s:.2g}'))} left"
        text = f"{clean(self._label, 60)}: {left} ({done}), {memory}"
        self._console.print(text, style="dim", markup=False)


class SweepBar(Bar):
    """The progress bar of a sweep."""

    def __init__(self, console: Console, label: str) -> None:
        super().__init__(console, label)
        self._words = SweepWords()

    def __call__(self, state: State) -> None:
        """Show the progress of the sweep."""
        self.show(*self._words(state))


class ClaimsBar(Bar):
    """The progress bar of claims: the current claim, its set of runs, and their progress."""

    def __init__(self, console: Console, label: str) -> None:
        super().__init__(console, label)
        self._words = ClaimsWords()

    def __call__(self, claim: str, runs: str, state: State) -> None:
        """Show the progress of the runs of a claim."""
        self.show(*self._words(claim, runs, state))
