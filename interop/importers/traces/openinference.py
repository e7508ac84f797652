"""The importer for spans of OpenInference as Phoenix exports them: a flat list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..documents import is_answer, listed_in, listed_keys
from ..json_files import AT_ONCE, decode, size_of
from ..json_sniff import Shape, shape_of
from ..protocol import Diagnostic, Found, Reading
from ..timestamps import seconds_of
from .attributes import span_of
from .spans import Span
from .stored import SpanPiece, read_held, read_stored

__all__ = ("OpenInferenceImporter",)

_NAME: Final = "openinference"


class _Context(msgspec.Struct):
    trace_id: str
    span_id: str


class _Span(msgspec.Struct):
    context: _Context
    name: str = ""
    span_kind: str = ""
    parent_id: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    status_code: str = ""
    status_message: str = ""
    attributes: Mapping[str, JSON] = {}


@final
class OpenInferenceImporter:
    """Reads spans of OpenInference."""

    name = _NAME
    about = "spans of OpenInference, as Phoenix exports them"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins with such a span."""
        return shape is not None and {"span_kind", "attributes", "context"} <= listed_keys(shape)

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the conversations in a file.

        Raises:
            InvalidInput: it cannot be read.
        """

        def read(data: bytes | msgspec.Raw, where: str) -> Iterator[Span | Diagnostic]:
            try:
                yield _span(data, where, reading)
            except InvalidInput as error:
                yield Diagnostic("problem", f"invalid span: {error}", where)
            except RecursionError:
                yield Diagnostic("problem", "invalid span: it nests too deeply", where)

        shape = shape_of(source)
        if size_of(source) > AT_ONCE or (shape is not None and is_answer(shape)):
            pieces = (
                SpanPiece(f"{source}, span {number}", member, data)
                for number, (member, data) in enumerate(listed_in(source, shape), start=1)
            )
            yield from read_stored(source, pieces, read, _NAME, reading)
            return
        yield from read_held(source, read, _NAME, reading)


def _span(data: bytes | msgspec.Raw, where: str, reading: Reading) -> Span:
    span = decode(data, _Span)
    start = seconds_of(span.start_time, reading.zone)
    if start is None:
        raise InvalidInput("it lacks a start_time")
    failed = span.status_code.upper() == "ERROR"
    attributes = _flat(span.attributes)
    output = attributes.get("output.value")
    why = span.status_message or (output if isinstance(output, str) and output else "it failed")
    return span_of(
        attributes,
        id=span.context.span_id,
        trace=span.context.trace_id,
        where=where,
        name=span.name,
        start=start,
        parent=span.parent_id,
        end=seconds_of(span.end_time, reading.zone),
        error=why if failed else None,
        kind=span.span_kind or "UNKNOWN",
    )


def _flat(attributes: Mapping[str, JSON], prefix: str = "") -> dict[str, JSON]:
    """Attributes by dotted names, also if an export nests them; lists stay."""
    flat: dict[str, JSON] = {}
    for key, value in attributes.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat
