"""Serves the metrics of a run over HTTP, so that a monitoring system can scrape them.

The run is replayed: a scrape returns the values at the simulated time that the clock has reached,
at ``speed`` simulated seconds per second. After the end of the run the last values remain.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from eastwest.observe.metrics import Numbers
from eastwest.observe.openmetrics import CONTENT_TYPE, snapshot
from eastwest.observe.run_metrics import Family


def server(
    families: list[Family],
    times_s: Numbers,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    speed: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
) -> ThreadingHTTPServer:
    """Return a server of ``/metrics``; start it with ``serve_forever``.

    The replay of the run begins with the call of this function. ``times_s`` are the ends of the
    sampled intervals in simulated seconds; ``speed`` is the number of simulated seconds per second
    of ``clock``. Port 0 selects a free port (``server_port``). With an infinite ``speed`` the
    server always answers with the values at the end of the run.
    """
    if not speed > 0:
        raise ValueError(f"the speed must be above 0 simulated seconds per second, but is {speed}")
    begin = clock()

    class Handler(BaseHTTPRequestHandler):
        """Answers requests for ``/metrics`` with the values at the current simulated time."""

        server_version = "eastwest"
        sys_version = ""
        timeout = 30

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404, "only /metrics is served")
                return
            elapsed = clock() - begin
            reached = np.inf if np.isinf(speed) else elapsed * speed
            place = int(np.searchsorted(times_s, reached, side="right")) - 1
            body = snapshot(families, place).encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: a log line for each scrape is not wanted."""

    return ThreadingHTTPServer((host, port), Handler)
