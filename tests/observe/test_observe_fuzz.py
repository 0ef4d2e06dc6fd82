"""Damaged spans of every format: they are refused with a message, or read."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spans_made
from eastwest.errors import InputError
from eastwest.observe.load import open_spans
from eastwest.observe.take import import_spans
from spans_made import a_call

KINDS = ["otlp-json", "otlp-lines", "otlp-proto", "otlp-varint", "jaeger", "zipkin", "csv"]
_FORMATS = {"otlp-lines": "otlp-json", "otlp-varint": "otlp-proto"}


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damaged_files(kind: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = spans_made.write(folder, a_call(), kind)
        whole = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            first = data.draw(st.integers(0, len(whole)))
            last = min(len(whole), first + data.draw(st.integers(0, 30)))
            whole[first:last] = data.draw(st.binary(max_size=12))
        path.write_bytes(whole)
        with contextlib.suppress(InputError):
            import_spans(
                [path],
                folder / "out",
                source_format=_FORMATS.get(kind, kind),
                on_bad_row="skip",
                lasting=False,
            )
            with open_spans(folder / "out") as opened:
                assert opened.about["spans"] > 0
        assert not list(folder.glob(".partial*"))
