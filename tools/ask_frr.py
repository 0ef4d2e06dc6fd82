"""Prints the answer of an FRR daemon to a command: ``ask_frr.py SOCKET COMMAND``.

The program uses the protocol of FRR's shell vtysh on the daemon's socket, and needs no PAM
configuration.
"""

from __future__ import annotations

import socket
import sys

_LIMIT_S = 10.0


def ask(path: str, command: str) -> str:
    """Return a daemon's answer to a command; ``path`` is the daemon's socket."""
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.settimeout(_LIMIT_S)
        daemon.connect(path)
        for each in ("enable", command):
            daemon.sendall(each.encode() + b"\0")
            answer = b""
            # An answer ends with three zero bytes and a status.
            while answer[-4:-1] != b"\0\0\0" and (piece := daemon.recv(1 << 16)):
                answer += piece
    return answer[:-4].decode()


if __name__ == "__main__":
    sys.stdout.write(ask(sys.argv[1], sys.argv[2]))
