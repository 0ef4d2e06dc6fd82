"""Start and end of the whole server: Ctrl-C leaves no process and no file."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from studio_client import LONG

SERVER = """
import sys
from eastwest.studio import serve
serve(sys.argv[1] if len(sys.argv) > 1 else None, browser=False,
      say=lambda text: print(text, flush=True))
"""


def children(pid: int) -> list[int]:
    """Return the processes that a process has started (Linux)."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ask(address: str, method: str, path: str, body: object = None) -> Any:
    port, token = re.findall(r":(\d+)/\?token=(\S+)", address)[0]
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, json.dumps(body), {"X-Eastwest-Token": token})
        return json.loads(connection.getresponse().read())


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_remains_of_a_server(tmp_path: Path, ending: signal.Signals) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None and server.stderr is not None
    address = server.stdout.readline().strip().rpartition(" ")[2]
    arguments = Path(f"/proc/{server.pid}/cmdline").read_text()
    run = ask(address, "POST", "/api/runs", {"text": LONG, "label": "", "live": True})["run"]
    while not ask(address, "GET", "/api/runs")[0]["simulated_s"]:
        time.sleep(0.05)
    workers = children(server.pid)
    assert workers and run == 1
    (scratch,) = temporary.iterdir()
    assert scratch.stat().st_mode & 0o077 == 0
    port, token = re.findall(r":(\d+)/\?token=(\S+)", address)[0]
    assert token not in arguments
    stream = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    stream.request("GET", f"/api/runs/{run}/stream?token={token}")
    answer = stream.getresponse()
    answer.readline()
    server.send_signal(ending)
    assert server.wait(timeout=300) is not None
    answer.close()
    stream.close()
    end = time.monotonic() + 300
    while any(alive(pid) for pid in workers):
        assert time.monotonic() < end
        time.sleep(0.05)
    if ending is not signal.SIGKILL:
        assert list(temporary.iterdir()) == []
        assert "Traceback" not in server.stderr.read()
    server.stdout.close()
    server.stderr.close()
