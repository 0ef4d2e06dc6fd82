"""Values and attributes as OTLP's JSON writes them (``AnyValue`` and ``KeyValue``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return ``attributes`` in OTLP's JSON: a list of objects with ``key`` and ``value``."""
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def any_value(value: Any) -> dict[str, Any]:
    """Return a value of JSON as an ``AnyValue`` of OTLP, which is empty for null."""
    if value is None:
        return {}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)}}
    if isinstance(value, bool | float):
        return {"boolValue" if isinstance(value, bool) else "doubleValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}
