"""Spans that wait until what belongs to them is there.

A span is exported when it ends, so the inner ones come first: which conversation they belong to, and
whose turn they are, is known only once those around them have come. A trace is complete when the
span around each of its spans is there, or belongs to another program; some more may still be on the
way, so it settles when nothing has come for a while. A trace of which something is missing waits for
longer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final, final

import msgspec

from .spans import Span

__all__ = ("WaitingTraces",)

_REMEMBERED: Final = 10_000  # traces whose conversation is remembered, for spans that come late


@final
class _Trace:
    """The spans of one trace that wait."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.spans: dict[str, Span] = {}
        self.size = 0
        self.changed = 0.0

    @property
    def first(self) -> float:
        return min(span.start for span in self.spans.values())

    @property
    def complete(self) -> bool:
        spans = self.spans
        return all(
            one.parent is None or one.remote or one.parent in spans for one in spans.values()
        )


@final
class WaitingTraces:
    """Keeps spans until they can be read.

    Args:
        settle: seconds without another span after which a complete trace is read.
        patience: the same for a trace of which something is missing.
        most: bytes that may wait; beyond that, what has waited longest is read as it is.
    """

    def __init__(self, *, settle: float, patience: float, most: int) -> None:
        self._settle = settle
        self._patience = patience
        self._most = most
        self._size = 0
        self._traces: dict[str, _Trace] = {}
        self._sessions: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._traces)

    def add(self, spans: Sequence[Span], size: int, now: float) -> None:
        """Keeps more spans.

        Args:
            spans: in any order. One that waits already is left out.
            size: bytes that they came in.
            now: seconds, on any clock that does not go back.
        """
        share = size // max(1, len(spans))
        for span in spans:
            trace = self._traces.get(span.trace)
            if trace is None:
                known = self._sessions.get(span.trace, span.trace)
                trace = self._traces[span.trace] = _Trace(known)
            if span.conversation is not None and trace.session == span.trace:
                trace.session = span.conversation
                self._remember(span.trace, span.conversation)
            if span.id not in trace.spans:
                trace.spans[span.id] = span
                trace.size += share
                self._size += share
            trace.changed = now

    def take(self, now: float, *, everything: bool = False) -> Iterator[list[Span]]:
        """What can be read now; it waits no longer.

        Of one conversation, an earlier trace is read before a later one.

        Args:
            now: as for ``add``.
            everything: what is not complete as well.

        Yields:
            The spans of traces of one conversation, by conversation.
        """
        sessions: dict[str, list[tuple[str, _Trace]]] = {}
        for name, trace in sorted(self._traces.items(), key=lambda item: item[1].first):
            sessions.setdefault(trace.session, []).append((name, trace))
        for traces in sessions.values():
            found: list[Span] = []
            for name, trace in traces:
                wait = self._settle if trace.complete else self._patience
                if not everything and now < trace.changed + wait:
                    break
                found += self._released(name)
            if found:
                yield found
        while self._size > self._most:
            yield self._released(min(self._traces, key=lambda name: self._traces[name].changed))

    def _released(self, name: str) -> list[Span]:
        trace = self._traces.pop(name)
        self._size -= trace.size
        # A late span of this trace need not say again which conversation it belongs to.
        return [_named(span, trace.session, name) for span in trace.spans.values()]

    def _remember(self, trace: str, session: str) -> None:
        self._sessions[trace] = session
        self._sessions.move_to_end(trace)
        if len(self._sessions) > _REMEMBERED:
            self._sessions.popitem(last=False)


def _named(span: Span, session: str, trace: str) -> Span:
    if span.conversation is not None or session == trace:
        return span
    return msgspec.structs.replace(span, conversation=session)
