"""Progress bars of commands on standard error, shown only where it is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from rich.console import Console

from eastwest import core
from eastwest.core import TELLING_SHARE, share_done
from eastwest.run import peak_rss_mb
from eastwest.units import clean, count, size, span

if TYPE_CHECKING:
    from rich.progress import Progress

    from eastwest.sweep import State


def describe(progress: core.Progress) -> str:
    """Return simulated time, jobs done, packet-hops per second and time left, as text."""
    parts = [span(progress["simulated_s"])]
    if progress["jobs_total"]:
        parts.append(f"{count(progress['jobs_done'])}/{count(progress['jobs_total'])} done")
    wall = progress["wall_s"]
    if wall > 0:
        parts.append(f"{count(round(progress['packet_hops'] / wall))} hops/s")
    share = share_done(progress)
    if share is not None and share >= TELLING_SHARE:
        parts.append(f"{span(max(0, round(wall * (1 - share) / share)))} left")
    return " · ".join(parts)


class Bar:
    """A progress bar on a terminal; without a terminal it prints nothing.

    It is drawn only when progress is reported, so that no second thread takes time from the
    simulator.
    """

    def __init__(self, console: Console, label: str) -> None:
        self._console = console
        self._label = label
        self._progress = _progress(console) if console.is_terminal else None
        if self._progress is not None:
            self._progress.add_task("", total=None, label=clean(label, 30))

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, text: str, share: float | None, label: str = "") -> None:
        """Draw a bar for the share of the work that is done (0 to 1; None: unknown), and a text."""
        if self._progress is None:
            return
        self._progress.start()
        total = None if share is None else 1.0
        label = clean(label or self._label, 30)
        (task,) = self._progress.task_ids
        self._progress.update(task, description=text, total=total, completed=share, label=label)
        self._progress.refresh()


class RunBar(Bar):
    """The progress bar of one simulation.

    With ``estimate``, it prints once how long a run will take, after a second of the run and with
    or without a terminal, because no earlier run gave an estimate. This is mostly an upper bound,
    because the last of many flows finish together.
    """

    def __init__(self, console: Console, label: str, estimate: bool = False) -> None:
        super().__init__(console, label)
        self._estimate = estimate

    def __call__(self, progress: core.Progress) -> None:
        """Show the progress of the simulation."""
        share = share_done(progress)
        wall_s = progress["wall_s"]
        if self._estimate and share and share >= TELLING_SHARE and wall_s >= 1:
            self._estimate = False
            whole = f"up to {span(wall_s / share)}, {size(peak_rss_mb() * 1e6)} or more"
            text = f"{clean(self._label, 60)}: {whole} of memory (from its first {span(wall_s)})"
            self._console.print(text, style="dim", markup=False)
        self.show(describe(progress), share)


class SweepBar(Bar):
    """The progress bar of a sweep."""

    def __enter__(self) -> Self:
        return self  # drawn from the first report on, because a question may come before it

    def __call__(self, state: State) -> None:
        """Show the progress of the sweep."""
        self.show(" · ".join(_runs(state)), _share(state))


class ClaimsBar(Bar):
    """The progress bar of claims: the current claim, its set of runs, and their progress."""

    def __call__(self, claim: str, runs: str, state: State) -> None:
        """Show the progress of the runs of a claim."""
        self.show(" · ".join([clean(runs, 20), *_runs(state)]), _share(state), claim)


def _progress(console: Console) -> Progress:
    """Return a bar of rich, which is imported only where there is a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    return Progress(
        TextColumn("{task.fields[label]}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        auto_refresh=False,
    )


def _runs(state: State) -> Iterator[str]:
    """Yield the numbers of runs done, taken from the store and failed, and the time left."""
    yield f"{count(state.done)}/{count(state.planned)} runs"
    if state.reused:
        yield f"{count(state.reused)} from the store"
    if state.failed:
        yield f"{count(state.failed)} failed"
    if state.left_s is not None:
        yield f"{span(state.left_s)} left"


def _share(state: State) -> float:
    return (state.done + state.failed) / max(1, state.planned)
