"""Fetches Hadoop's jars from Maven Central, with Maven."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

VERSION = "3.4.2"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_ARTIFACTS = (
    "hadoop-common",
    "hadoop-hdfs",
    "hadoop-hdfs-client",
    "hadoop-yarn-server-resourcemanager",
    "hadoop-yarn-server-nodemanager",
    # The resource manager loads classes of this package even if the service is off.
    "hadoop-yarn-server-timelineservice",
    "hadoop-mapreduce-client-jobclient",
    "hadoop-mapreduce-client-shuffle",
    "hadoop-mapreduce-client-hs",
    "hadoop-mapreduce-examples",
)


def project(version: str = VERSION) -> str:
    """Return a Maven project that depends on the packages of a cluster."""
    needs = "".join(
        f"    <dependency><groupId>org.apache.hadoop</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>\n"
        for artifact in _ARTIFACTS
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n'
        "  <modelVersion>4.0.0</modelVersion>\n"
        "  <groupId>eastwest</groupId><artifactId>hadoop-check</artifactId><version>1</version>\n"
        "  <packaging>pom</packaging>\n"
        f"  <dependencies>\n{needs}  </dependencies>\n"
        "</project>\n"
    )


def command(pom: Path, into: Path) -> list[str]:
    """Return the call of Maven that copies all jars into a folder."""
    options = [f"-DoutputDirectory={into}", "-DincludeScope=runtime"]
    return ["mvn", "-B", "-q", "-f", str(pom), _PLUGIN, *options]


def fetch(cache: Path, version: str = VERSION) -> Path:
    """Return the folder of jars; fetch them first if the folder is not complete."""
    jars = cache / f"hadoop-{version}"
    if jars.is_dir():
        return jars
    partial = cache / f"hadoop-{version}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    pom = partial / "pom.xml"
    pom.write_text(project(version), "utf-8")
    subprocess.run(command(pom, partial), check=True)
    pom.unlink()
    partial.rename(jars)
    return jars
