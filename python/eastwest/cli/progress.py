"""The progress bars of commands: on a terminal's standard error, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from eastwest import core
from eastwest.core import TELLING_SHARE, share_done
from eastwest.run import peak_rss_mb
from eastwest.units import clean, count, size, span

if TYPE_CHECKING:
    from eastwest.sweep import State


def describe(progress: core.Progress) -> str:
    """Simulated time, jobs done, packet-hops per second and time left."""
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
    """A bar on a terminal; silent where there is none.

    It draws only when it is told something, so that no second thread takes time from the simulator.
    """

    def __init__(self, console: Console, label: str) -> None:
        self._console = console
        self._label = label
        self._progress = Progress(
            TextColumn("{task.fields[label]}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            auto_refresh=False,
            disable=not console.is_terminal,
        )
        self._task: TaskID = self._progress.add_task("", total=None, label=clean(label, 30))

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def show(self, text: str, share: float | None, label: str = "") -> None:
        """Draw how far the work has come: a share of it, where that is known."""
        if self._progress.disable:
            return
        total = None if share is None else 1.0
        label = clean(label or self._label, 30)
        self._progress.update(
            self._task, description=text, total=total, completed=share, label=label
        )
        self._progress.refresh()


class RunBar(Bar):
    """The bar of one simulation.

    With ``estimate``, a run that has gone on for a second, and far enough to tell, says how long it
    will take, terminal or not: nothing was known of it before. Mostly a bound, as the last flows of
    many finish together.
    """

    def __init__(self, console: Console, label: str, estimate: bool = False) -> None:
        super().__init__(console, label)
        self._estimate = estimate

    def __call__(self, progress: core.Progress) -> None:
        """Show how far the simulation has come."""
        share = share_done(progress)
        wall_s = progress["wall_s"]
        if self._estimate and share and share >= TELLING_SHARE and wall_s >= 1:
            self._estimate = False
            whole = f"up to {span(wall_s / share)}, {size(peak_rss_mb() * 1e6)} or more"
            text = f"{clean(self._label, 60)}: {whole} of memory (from its first {span(wall_s)})"
            self._console.print(text, style="dim", markup=False)
        self.show(describe(progress), share)


class SweepBar(Bar):
    """The bar of a sweep."""

    def __enter__(self) -> Self:
        return self  # drawn from the first report on: a question may come before

    def __call__(self, state: State) -> None:
        """Show how far the sweep has come."""
        self._progress.start()
        self.show(" · ".join(_runs(state)), _share(state))


class ClaimsBar(Bar):
    """The bar of claims: the one at work, which of its sets of runs, and how far these are."""

    def __call__(self, claim: str, runs: str, state: State) -> None:
        """Show how far the runs of a claim have come."""
        self.show(" · ".join([clean(runs, 20), *_runs(state)]), _share(state), claim)


def _runs(state: State) -> Iterator[str]:
    """Runs done, taken from the store, failed, and time left."""
    yield f"{count(state.done)}/{count(state.planned)} runs"
    if state.reused:
        yield f"{count(state.reused)} from the store"
    if state.failed:
        yield f"{count(state.failed)} failed"
    if state.left_s is not None:
        yield f"{span(state.left_s)} left"


def _share(state: State) -> float:
    return (state.done + state.failed) / max(1, state.planned)
