"""Starts HDFS, YARN and the history server in their namespaces, runs jobs, and stops all."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hadoop_check import configuration
from hadoop_check.network import MASTER, NODES, WORKERS, inside, space

#: Time limit in s until a daemon listens on its port; time limit in s until a job ends.
_START_S = 180
_JOB_S = 1200
_DAEMONS = {
    "namenode": ("org.apache.hadoop.hdfs.server.namenode.NameNode", 9000),
    "datanode": ("org.apache.hadoop.hdfs.server.datanode.DataNode", 9866),
    "resourcemanager": ("org.apache.hadoop.yarn.server.resourcemanager.ResourceManager", 8032),
    "nodemanager": ("org.apache.hadoop.yarn.server.nodemanager.NodeManager", 13562),
    "historyserver": ("org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer", 10020),
}


class ClusterError(RuntimeError):
    """Error of a daemon or a job; the message contains the end of its log."""


class Cluster:
    """A cluster of HDFS and YARN that runs in network namespaces."""

    def __init__(self, folder: Path, jars: Path, java_home: Path, at_once: int) -> None:
        self.folder, self.jars, self.java_home = folder, jars, java_home
        self.at_once = at_once
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.logs: list[Path] = []

    def java(self, node: str, main: str, *arguments: str, heap_mb: int = 256) -> list[str]:
        """Return the command of a Java program of Hadoop in a node."""
        options = [f"-Xmx{heap_mb}m", *configuration.JAVA.split()]
        classpath = f"{self.folder / node / 'conf'}:{self.jars}/*"
        java = str(self.java_home / "bin" / "java")
        return inside(node, java, *options, "-cp", classpath, main, *arguments)

    def start(self) -> None:
        """Write configurations, format the file system, start all daemons and wait for them."""
        for node in NODES:
            configuration.write(node, self.folder, self.jars, self.java_home, self.at_once)
        main, _ = _DAEMONS["namenode"]
        self.call(MASTER, main, "-format", "-nonInteractive")
        self._daemon(MASTER, "namenode")
        self._daemon(MASTER, "resourcemanager")
        self._daemon(MASTER, "historyserver")
        for worker in WORKERS:
            self._daemon(worker, "datanode")
            self._daemon(worker, "nodemanager")
        self._wait()

    def _daemon(self, node: str, name: str) -> None:
        log = self.folder / f"{name}-{node}.log"
        self.logs.append(log)
        with log.open("wb") as stream:
            self.daemons.append(
                subprocess.Popen(
                    self.java(node, _DAEMONS[name][0]),
                    stdout=stream,
                    stderr=stream,
                    stdin=subprocess.DEVNULL,
                    cwd=self.folder / node,
                    env=self._environment(),
                    start_new_session=True,
                )
            )

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
        return kept | {"JAVA_HOME": str(self.java_home), "HADOOP_USER_NAME": "root"}

    def _wait(self) -> None:
        wanted = {(MASTER, _DAEMONS[name][1]) for name in ("namenode", "resourcemanager")}
        wanted.add((MASTER, _DAEMONS["historyserver"][1]))
        wanted |= {(w, _DAEMONS[name][1]) for w in WORKERS for name in ("datanode", "nodemanager")}
        deadline = time.monotonic() + _START_S
        while wanted:
            for daemon, log in zip(self.daemons, self.logs, strict=True):
                if daemon.poll() is not None:
                    raise ClusterError(f"{log.stem} has ended; its log ends with\n{_tail(log)}")
            if time.monotonic() > deadline:
                missing = ", ".join(f"{node}:{port}" for node, port in sorted(wanted))
                raise ClusterError(f"not listening after {_START_S} s: {missing}")
            wanted -= {(node, port) for node, port in wanted if _listens(node, port)}
            time.sleep(0.5)
        time.sleep(5)  # Wait until the workers have registered with the resource manager.

    def call(self, node: str, main: str, *arguments: str) -> str:
        """Run a Java program of Hadoop to its end and return its output."""
        done = subprocess.run(
            self.java(node, main, *arguments, heap_mb=512),
            capture_output=True,
            text=True,
            timeout=_JOB_S,
            cwd=self.folder,
            env=self._environment(),
            check=False,
        )
        if done.returncode:
            tail = (done.stdout + done.stderr)[-2000:]
            raise ClusterError(f"{main} {' '.join(arguments)} failed:\n{tail}")
        return done.stdout

    def job(self, *arguments: str) -> None:
        """Run one of Hadoop's example jobs from the master."""
        self.call(MASTER, "org.apache.hadoop.examples.ExampleDriver", *arguments)

    def file_system(self, *arguments: str) -> str:
        """Run ``hdfs dfs`` on the master and return its output."""
        return self.call(MASTER, "org.apache.hadoop.fs.FsShell", *arguments)

    def history(self, into: Path) -> Path:
        """Copy the history of the job that ended last out of the file system; return its path."""
        pattern = "/tmp/hadoop-yarn/staging/history/done*/**/*.jhist"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            listed = self.file_system("-ls", "-R", "/tmp/hadoop-yarn/staging/history")
            found = sorted(
                line.split()[-1] for line in listed.splitlines() if line.endswith(".jhist")
            )
            taken = {path.name for path in into.parent.glob("**/*.jhist")}
            fresh = [path for path in found if path.rsplit("/", 1)[-1] not in taken]
            if fresh:
                into.mkdir(parents=True, exist_ok=True)
                self.file_system("-get", fresh[-1], str(into))
                return into / fresh[-1].rsplit("/", 1)[-1]
            time.sleep(2)
        raise ClusterError(f"no history appeared at {pattern}")

    def stop(self) -> None:
        """End all daemons."""
        for daemon in self.daemons:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGKILL)
        for daemon in self.daemons:
            daemon.wait()
        self.daemons.clear()


def _tail(log: Path) -> str:
    return log.read_text("utf-8", errors="replace")[-3000:]


def _listens(node: str, port: int) -> bool:
    """Return whether a TCP port of a node is open."""
    command = ["ip", "netns", "exec", space(node), "ss", "-Htln", f"sport = :{port}"]
    return bool(subprocess.run(command, capture_output=True, check=True).stdout.strip())


@contextlib.contextmanager
def cluster(folder: Path, jars: Path, java_home: Path, at_once: int = 1) -> Iterator[Cluster]:
    """Yield a running cluster and stop it at the end; its files are removed unless it failed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    running = Cluster(folder, jars, java_home, at_once)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def counters(nodes: Sequence[str] = NODES) -> dict[str, int]:
    """Return retransmissions and timeouts of TCP since the start, over all nodes."""
    total = {"retransmits": 0, "timeouts": 0}
    names = {"TcpRetransSegs": "retransmits", "TcpExtTCPTimeouts": "timeouts"}
    for node in nodes:
        command = ["ip", "netns", "exec", space(node), "nstat", "-asz", *names]
        for line in subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.splitlines():
            name, _, rest = line.partition(" ")
            if name in names:
                total[names[name]] += int(rest.split()[0])
    return total
