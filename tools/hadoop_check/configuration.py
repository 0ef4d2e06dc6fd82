"""Configuration of the cluster: each worker can run two maps, or a reduce and the job's master."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from hadoop_check.network import MASTER

_OPENS = " ".join(
    f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util", "net")
)
#: Name of a setting; without it, YARN does not use a disk that is 90 % full, even if much room is
#: left.
_FULL_DISK = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"
_AT_ONCE = "yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments"
JAVA = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {_OPENS}"


def properties(
    node: str, folder: Path, jars: Path, java_home: Path, at_once: int = 1
) -> dict[str, dict[str, str]]:
    """Return the properties by file; sizes are those of the measurements that ship as reference.

    ``at_once`` is the number of containers without a preferred node that a node gets in one
    heartbeat.
    """
    data = folder / node
    return {
        "core-site.xml": {
            "fs.defaultFS": f"hdfs://{MASTER}:9000",
            "hadoop.tmp.dir": f"{data}/tmp",
            "hadoop.http.staticuser.user": "root",
        },
        "hdfs-site.xml": {
            "dfs.replication": "1",
            "dfs.blocksize": str(64 << 20),
            "dfs.namenode.name.dir": f"file://{data}/name",
            "dfs.datanode.data.dir": f"file://{data}/data",
            "dfs.datanode.hostname": node,
            "dfs.namenode.datanode.registration.ip-hostname-check": "false",
            "dfs.namenode.safemode.extension": "0",
            "dfs.permissions.enabled": "false",
            "dfs.datanode.du.reserved": "0",
        },
        "yarn-site.xml": {
            "yarn.resourcemanager.hostname": MASTER,
            "yarn.resourcemanager.scheduler.class": (
                "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
            ),
            "yarn.nodemanager.hostname": node,
            "yarn.nodemanager.address": f"{node}:45454",
            "yarn.nodemanager.aux-services": "mapreduce_shuffle",
            "yarn.nodemanager.aux-services.mapreduce_shuffle.class": (
                "org.apache.hadoop.mapred.ShuffleHandler"
            ),
            "yarn.nodemanager.resource.memory-mb": "2560",
            "yarn.nodemanager.resource.cpu-vcores": "8",
            "yarn.nodemanager.local-dirs": f"{data}/local",
            "yarn.nodemanager.log-dirs": f"{data}/logs",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.enable": "false",
            _FULL_DISK: "100",
            "yarn.nodemanager.env-whitelist": "JAVA_HOME",
            "yarn.scheduler.minimum-allocation-mb": "256",
            "yarn.scheduler.maximum-allocation-mb": "2560",
            "yarn.application.classpath": f"{jars}/*",
        },
        "mapred-site.xml": {
            "mapreduce.framework.name": "yarn",
            "mapreduce.application.classpath": f"{jars}/*",
            "mapreduce.map.memory.mb": "1024",
            "mapreduce.reduce.memory.mb": "2048",
            "mapred.child.java.opts": f"-Xmx700m {JAVA}",
            "mapreduce.map.speculative": "false",
            "mapreduce.reduce.speculative": "false",
            "mapreduce.task.io.sort.mb": "100",
            "mapreduce.admin.user.env": f"JAVA_HOME={java_home}",
            "mapreduce.jobhistory.address": f"{MASTER}:10020",
            "mapreduce.jobhistory.webapp.address": f"{MASTER}:19888",
            "mapreduce.jobhistory.jhist.format": "json",
            "mapreduce.jobhistory.move.interval-ms": "2000",
            "yarn.app.mapreduce.am.resource.mb": "512",
            "yarn.app.mapreduce.am.command-opts": f"-Xmx300m {JAVA}",
            "yarn.app.mapreduce.am.env": f"JAVA_HOME={java_home}",
        },
        "capacity-scheduler.xml": {
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": "100",
            "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
            # The default is 1; with more, the reduces are not spread over the nodes.
            _AT_ONCE: str(at_once),
        },
    }


def text(values: dict[str, str]) -> str:
    """Return a configuration file."""
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in values.items()
    ]
    body = "\n".join(lines)
    return f'<?xml version="1.0"?>\n<configuration>\n{body}\n</configuration>\n'


_LOGS = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
"""


def write(node: str, folder: Path, jars: Path, java_home: Path, at_once: int = 1) -> Path:
    """Write a node's configuration and return its folder."""
    conf = folder / node / "conf"
    conf.mkdir(parents=True)
    for name, values in properties(node, folder, jars, java_home, at_once).items():
        (conf / name).write_text(text(values), "utf-8")
    (conf / "log4j.properties").write_text(_LOGS, "utf-8")
    for page in ("hdfs", "datanode"):
        # The jars lack the web pages of HDFS, and its servers do not start without their folder.
        (conf / "webapps" / page).mkdir(parents=True)
    return conf
