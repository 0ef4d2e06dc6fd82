"""Starts Debian's Prometheus on the loopback interface, with storage in a folder of the test."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Time limit in s until the server is ready, also on a busy machine.
_PATIENCE_S = 120


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def prometheus(program: str, folder: Path, scrape: str | None = None) -> Iterator[str]:
    """Start a server that scrapes ``scrape``, if given, ten times per second; yield its address."""
    port = _free_port()
    config = folder / "prometheus.yml"
    jobs = ""
    if scrape is not None:
        jobs = f"""
scrape_configs:
  - job_name: run
    scrape_interval: 100ms
    scrape_timeout: 100ms
    static_configs: [{{targets: ["{scrape}"]}}]
"""
    config.write_text(f"global: {{}}\n{jobs}")
    flags = {
        "config.file": config,
        "storage.tsdb.path": folder / "tsdb",
        "storage.tsdb.retention.time": "100y",
        "web.listen-address": f"127.0.0.1:{port}",
    }
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *(f"--{name}={value}" for name, value in flags.items())],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(f"{url}/-/ready", process, folder / "prometheus.log")
        yield url
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"Prometheus is not ready: {log.read_text(errors='replace')[-2000:]}")
