"""Makes histories in Avro's binary form from histories in JSON, by the specification.

No real history in binary form was available. Hadoop's ``EventWriter`` writes the line
``Avro-Binary``, the schema on a line, and then the records one after the other. Called as a
program, this file writes ``data/traces/jhist/made-from-the-specification.jhist.gz`` again.
"""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import fastavro

from project_paths import DATA

SOURCE = DATA / "jhist" / "pi.jhist.gz"
MADE = DATA / "traces" / "jhist" / "made-from-the-specification.jhist.gz"


def binary(history: str) -> bytes:
    """Return the binary form of a history in JSON form."""
    lines = [line for line in history.splitlines() if line.strip()]
    schema = fastavro.parse_schema(json.loads(lines[1]))
    out = io.BytesIO()
    out.write(b"Avro-Binary\n" + lines[1].encode() + b"\n")
    for line in lines[2:]:
        record = json.loads(line)
        ((kind, event),) = record["event"].items()
        plain = {"type": record["type"], "event": (kind, _plain(event))}
        fastavro.schemaless_writer(out, schema, plain)
    return out.getvalue()


def _plain(value: Any) -> Any:
    """Return a value without the type names that JSON puts around values of unions."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, held),) = value.items()
        if name == "string" or name.startswith("org.apache.hadoop."):
            return _plain(held)
    return {name: _plain(held) for name, held in value.items()}


if __name__ == "__main__":
    MADE.write_bytes(gzip.compress(binary(gzip.decompress(SOURCE.read_bytes()).decode()), mtime=0))
