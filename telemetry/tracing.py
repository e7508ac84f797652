"""The trace of the request in which something is recorded: a W3C ``traceparent``.

It is OpenTelemetry's current span, if a program uses that, or what the program says by ``in_request``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ..engine.errors import InvalidInput
from .jsonable import shown

__all__ = ("current_traceparent", "in_request")

_FORM: Final = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_said: ContextVar[str | None] = ContextVar("duolog_traceparent", default=None)


@contextmanager
def in_request(traceparent: str | None) -> Iterator[None]:
    """Assigns the events recorded in the block to the request with this ``traceparent`` header.

    Only programs without OpenTelemetry need it.

    Args:
        traceparent: the header, as the W3C recommendation *Trace Context* has it; None if the request
            has none.

    Raises:
        InvalidInput: another form.
    """
    if traceparent is not None and not _FORM.fullmatch(traceparent):
        raise InvalidInput(
            "a traceparent has the form 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, "
            f"not {shown(traceparent)}"
        )
    token = _said.set(traceparent)
    try:
        yield
    finally:
        _said.reset(token)


def current_traceparent() -> str | None:
    """The trace context of what happens now; None if there is none."""
    said = _said.get()
    if said is not None:
        return said
    traces = sys.modules.get("opentelemetry.trace")
    if traces is None:  # then no span was started
        return None
    context = traces.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
