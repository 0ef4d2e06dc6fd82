"""Conventions for one span, shared by all readers: identifiers, names, times and places.

OpenTelemetry's semantic conventions name the place where a span was recorded; older names of these
attributes (OpenTracing's, Jaeger's) are accepted too. If a source names only the pod, its service
is the pod's name without the two suffixes that Kubernetes adds to a deployment's pods.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from eastwest.observe.form import EARLIEST_NS, LATEST_NS
from eastwest.observe.remarks import Remarks

#: Maximum length of a name in characters; longer names are cut.
MOST_TEXT = 4096
#: Maximum length of the JSON text of a span's attributes, in characters.
MOST_ATTRIBUTES = 1 << 16

#: Attributes that name the service of a span, in order of preference.
SERVICE_KEYS = ("service.name",)
#: Attributes that name the instance (pod, container, process) of a span, in order of preference.
INSTANCE_KEYS = ("k8s.pod.name", "service.instance.id", "container.id", "client-uuid")
#: Attributes that name the host of a span, in order of preference.
HOST_KEYS = ("k8s.node.name", "host.name", "hostname", "host.id", "ip")

#: Translation that removes hexadecimal digits: a valid identifier becomes empty.
NO_HEX = str.maketrans("", "", "0123456789abcdef")
_NO_HEX_OR_DASH = str.maketrans("", "", "0123456789abcdef-")
#: Values of the parent's id with which sources mark a span that has no parent.
NO_PARENT = frozenset(("", "0", "root", "null", "none", "nan", "-1"))

#: Encoder of JSON for integers beyond 64 bits, which orjson refuses. It is created once, because
#: ``json.dumps`` would create an encoder for every call.
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode
_POD = re.compile(r"(?P<service>.+?)-[a-f0-9]{8,10}-[a-z0-9]{5}")
_STATEFUL = re.compile(r"(?P<service>.+)-[0-9]{1,4}")
_KINDS = {
    "internal": "internal",
    "server": "server",
    "client": "client",
    "producer": "producer",
    "consumer": "consumer",
}


class SpanError(ValueError):
    """Error: a span, or a part of it, cannot be used; ``found`` is the wrong value as text."""

    def __init__(self, reason: str, found: object = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.found = str(found)[:60]


@dataclass(slots=True)
class Place:
    """Place where spans were recorded: service, instance, host, and number of shared attributes."""

    service: str | None = None
    instance: str | None = None
    host: str | None = None
    resource: int | None = None


def text_of(value: object) -> str | None:
    """Return a text, cut to ``MOST_TEXT`` characters; None if ``value`` is empty or not a text."""
    if not isinstance(value, str) or not value:
        return None
    if len(value) <= MOST_TEXT and (value.isascii() or value.isprintable()):
        return value
    return value[:MOST_TEXT].encode(errors="replace").decode()


def name_of(value: object, remarks: Remarks) -> str | None:
    """Return the name of an operation; report it if it had to be changed."""
    name = text_of(value)
    if name != value and value:
        reason = (
            f"the name of an operation is not text, or longer than {MOST_TEXT:,} "
            "characters: changed"
        )
        remarks.note(
            reason,
            name or value,
            "operations whose names differ only in the changed part are counted as one",
        )
    return name


def id_of(value: object, what: str) -> str:
    """Return ``value`` if it is a valid identifier; raise ``SpanError`` for any other value.

    An identifier is a text of 1 to 128 ASCII characters. Hexadecimal digits become lower case; in
    other codes, such as base64, case is kept. ``what`` is the name of the field in the error.
    """
    if isinstance(value, str) and 0 < len(value) <= 128 and value.isascii():
        small = value.lower()
        return value if small == value or small.translate(_NO_HEX_OR_DASH) else small
    raise SpanError(
        f"{what} is missing, or is not text of 1 to 128 ASCII characters",
        "" if value is None else value,
    )


def parent_of(value: object) -> str | None:
    """Return the identifier of a parent; None for a value that means *no parent*.

    Raises ``SpanError`` for a value that is no valid identifier.
    """
    if value is None or (isinstance(value, str) and value.lower() in NO_PARENT):
        return None
    parent = id_of(value, "the parent's identifier")
    return parent if parent.strip("0") else None


def whole(value: object, what: str) -> int:
    """Return a whole number, also from a text; raise ``SpanError`` for any other value.

    ``what`` is the name of the field in the error.
    """
    if isinstance(value, str) and 0 < len(value) <= 20 and value.isascii():
        try:
            return int(value)
        except ValueError:
            pass
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise SpanError(f"{what} is not a whole number", "" if value is None else value)


def time_of(value: int, what: str) -> int:
    """Return ``value``, a time in ns since 1970; raise ``SpanError`` if it is not in 1980 to 2100.

    ``what`` is the name of the field in the error.
    """
    if not EARLIEST_NS <= value <= LATEST_NS:
        raise SpanError(f"{what} lies outside 1980 to 2100: is it in another unit?", value)
    return value


def kind_of(value: object) -> str | None:
    """Return the kind of a span in the normal form from its name in the source; None if unknown."""
    return _KINDS.get(value.lower()) if isinstance(value, str) else None


def service_of_pod(pod: str) -> str:
    """Return the service of a pod: the name of the pod without the suffixes of Kubernetes."""
    match = _POD.fullmatch(pod) or _STATEFUL.fullmatch(pod)
    return match["service"] if match else pod


def place_of(attributes: Mapping[str, Any]) -> Place:
    """Return the place (service, instance, host) that the attributes of a resource state."""

    def first(keys: tuple[str, ...]) -> str | None:
        return next((found for key in keys if (found := text_of(attributes.get(key)))), None)

    instance = first(INSTANCE_KEYS)
    service = first(SERVICE_KEYS)
    if service is None and instance is not None and "k8s.pod.name" in attributes:
        service = service_of_pod(instance)
    return Place(service, instance, first(HOST_KEYS))


def dumped(fields: Mapping[str, Any]) -> str:
    """Return ``fields`` as the text of a JSON object; raise ``SpanError`` for values JSON lacks."""
    try:
        return orjson.dumps(fields).decode()
    except TypeError:
        return _written_slowly(fields)


def written(attributes: Mapping[str, Any]) -> str | None:
    """Return attributes as the text of a JSON object; None if there are none.

    Raises ``SpanError`` if the text is too long, or for values that JSON does not have.
    """
    if not attributes:
        return None
    text = dumped(attributes)
    if len(text) > MOST_ATTRIBUTES:
        raise SpanError(
            f"the attributes of the span are longer than {MOST_ATTRIBUTES:,} characters", len(text)
        )
    return text


def _written_slowly(attributes: Mapping[str, Any]) -> str:
    """Return attributes as JSON text if orjson cannot: large integers, lone UTF-16 surrogates."""
    try:
        text = _ENCODE(attributes)
    except (ValueError, RecursionError):
        raise SpanError("the attributes of the span cannot be written as JSON") from None
    return text.encode(errors="replace").decode()
