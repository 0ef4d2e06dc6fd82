"""Companion files of job histories: topologies of clusters and configurations of jobs.

A topology in Rumen's form lists the hosts of a cluster by rack; the hosts are added to the table
``hosts``. A configuration (``job_…_conf.xml``) adds name, queue, user and paths to a job.
"""

from __future__ import annotations

import json
import re
from typing import Any
from xml.parsers import expat

from eastwest.errors import InputError
from eastwest.traces import hadoop
from eastwest.traces.source import Source
from eastwest.traces.write import Writer
from eastwest.units import size

_KEY = re.compile(rb'"([A-Za-z]+)"\s*:')
#: Maximum size in bytes of a companion file (topology or configuration).
MOST_BYTES = 32 << 20


def whole(source: Source) -> bytes:
    """Return the content of a companion file.

    Raises ``InputError`` if the file is too large, damaged or truncated.
    """
    pieces, length = [], 0
    while block := source.read():
        pieces.append(block)
        length += len(block)
        if length > MOST_BYTES:
            raise InputError(
                f"{source.name}: is larger than {size(MOST_BYTES)}, the limit for a "
                "topology or configuration"
            )
    if source.cut:
        raise InputError(f"{source.name}: is damaged or truncated: {source.cut}")
    return b"".join(pieces)


def read_topology(source: Source, writer: Writer) -> int:
    """Add the hosts of a topology file to the trace in ``writer``; return the number of hosts.

    Raises ``InputError`` if the file is not a topology of racks with hosts.
    """
    try:
        found = json.loads(whole(source))
        racks = [(_name(rack), rack["children"] or []) for rack in found["children"]]
        hosts = [(rack, _name(host)) for rack, children in racks for host in children]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{source.name}: is not a topology of racks with hosts, as Rumen writes it"
        ) from None
    for rack, host in hosts:
        writer.host(rack, host)
    return len(hosts)


def _name(node: Any) -> str | None:
    return hadoop.text_of(str(node["name"]).replace("\\", ""))


def read_conf(source: Source, confs: hadoop.Confs) -> None:
    """Read the configuration of a job and add it to ``confs`` under the job's id.

    The id is in the file's name. Raises ``InputError`` if the name has no job id, or if the file is
    damaged.
    """
    job = hadoop.job_id(source.path.name)
    found = settings(whole(source), source.name)
    if job is None:
        raise InputError(
            f"{source.name}: is the configuration of a job, but the file name has no job id, such "
            "as job_200904211745_0002_conf.xml"
        )
    confs.add(job, source.name, hadoop.conf_of(found))


def settings(text: bytes, where: str) -> dict[str, str]:
    """Return the values of those settings of an XML configuration that the import uses, by name.

    Raises ``InputError`` if ``text`` is not valid XML, or if it declares entities, which no
    configuration needs. ``where`` is the place of the text for messages.
    """
    reader = _Settings(where)
    try:
        reader.parser.Parse(text, True)
    except (expat.ExpatError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: is not a configuration in XML: {error}") from None
    return reader.found


class _Settings:
    def __init__(self, where: str) -> None:
        self.where = where
        self.found: dict[str, str] = {}
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self._held: list[str] = []
        self._key = ""

    def _entity(self, *_: Any) -> None:
        raise InputError(
            f"{self.where}: declares entities of XML, which are refused: no configuration "
            "needs them"
        )

    def _start(self, name: str, _: Any) -> None:
        self._held = []
        if name == "property":
            self._key = ""

    def _text(self, text: str) -> None:
        self._held.append(text)

    def _end(self, name: str) -> None:
        text = "".join(self._held).strip()
        if name == "name":
            self._key = text
        elif name == "value" and self._key in hadoop.WANTED:
            self.found[self._key] = text
        self._held = []


#: Known JSON files: (keys that the file has, kind of companion, description for the user). A
#: companion has an empty description; a file that is no companion has an empty kind.
_KINDS = (
    ({"children", "name"}, "topology", ""),
    (
        {"schema", "start_ts", "nodes"},
        "",
        "an execution trace of PyTorch: convert it with Chakra's converter first",
    ),
    ({"rankings", "numberValues"}, "", "a histogram of Rumen's tests"),
    ({"data"}, "", "values for a histogram of Rumen's tests"),
    ({"stageId", "numTasks"}, "", "an answer of Spark's REST interface"),
    ({"taskId", "taskMetrics"}, "", "an answer of Spark's REST interface"),
    ({"quantiles", "executorRunTime"}, "", "an answer of Spark's REST interface"),
    ({"id", "attempts"}, "", "an answer of Spark's REST interface"),
    ({"id", "hostPort"}, "", "an answer of Spark's REST interface"),
)


def kind_of(start: bytes) -> tuple[str, str]:
    """Return (kind of companion, description) of a file from its first bytes.

    A companion (``topology`` or ``conf``) has an empty description. For another known file, the
    kind is empty, and the description tells the user what the file contains. Both are empty for an
    unknown file.
    """
    text = start.lstrip()
    if text.startswith((b"<?xml", b"<configuration", b"<!--")):
        return ("conf", "") if b"<configuration" in text else ("", "XML, but not a configuration")
    keys = {key.decode(errors="replace") for key in _keys(text[:4096])}
    for needed, kind, said in _KINDS:
        if needed <= keys:
            return kind, said
    return "", ""


def _keys(text: bytes) -> list[bytes]:
    return _KEY.findall(text)
