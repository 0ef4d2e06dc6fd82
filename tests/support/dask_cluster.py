"""A Dask scheduler and its workers on the loopback interface, as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from distributed import Client

_QUIET = {"DASK_LOGGING__DISTRIBUTED": "warning", "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "60s"}


class LocalCluster:
    """A scheduler whose workers can be started and killed at any time."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = {**os.environ, **_QUIET, **settings}
        self.address = ""
        self.workers: list[subprocess.Popen[bytes]] = []
        note = folder / "scheduler.json"
        self.scheduler = self._dask(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(note),
        )  # fmt: skip
        until = time.monotonic() + 300
        while not (note.is_file() and note.stat().st_size):
            assert self.scheduler.poll() is None, self.said()
            assert time.monotonic() < until, "the scheduler did not start"
            time.sleep(0.02)
        self.address = json.loads(note.read_text())["address"]

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker of one thread without a nanny; it joins within a few seconds."""
        number = len(self.workers)
        worker = self._dask(
            "worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
            "--host", "127.0.0.1", "--name", f"w{number}",
            "--local-directory", str(self.folder / f"w{number}"),
            environment=environment,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def wait_for_workers(self, count: int) -> None:
        """Wait until this number of workers has joined."""
        with Client(self.address, set_as_default=False) as client:
            until = time.monotonic() + 300
            while len(client.nthreads()) != count:
                assert time.monotonic() < until, self.said()
                time.sleep(0.02)

    def said(self) -> str:
        """Return the output of the scheduler and all workers."""
        return (self.folder / "log").read_text(errors="replace")

    def stop(self) -> None:
        """End the scheduler and all workers."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _dask(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**self.environment, **(environment or {})}, cwd=self.folder,
            )  # fmt: skip


@contextmanager
def cluster(folder: Path, workers: int, **settings: str) -> Iterator[LocalCluster]:
    """Start a scheduler with this number of workers, and end them afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    found = LocalCluster(folder, settings)
    try:
        for _ in range(workers):
            found.add_worker()
        yield found
    finally:
        found.stop()
