"""Records conversations while their spans come in, as the importer of files records them.

Spans wait until their trace is complete, and are then read in the order of their beginnings, by the
same reader as those of a file. A span that comes twice is recorded once, also after a restart,
since the ids of events are made of those of spans. A late span is recorded after spans that
followed it, because the log is append-only; it keeps its own times.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final, final

import anyio
import anyio.to_thread
import msgspec

from ....engine.errors import (
    DuologError,
    InvalidInput,
    LogUnavailable,
    SessionClosedError,
    SessionNotFound,
    VersionConflict,
)
from ....engine.events import SessionOpened
from ....engine.log.contract import EventLog
from ....engine.logger import get_logger
from ....engine.records import ENVIRONMENT, Draft
from ....engine.session.commands import command_of
from ....telemetry.jsonable import storable
from ..batches import taken_in, unfit
from ..conversation.builder import ConversationBuilder, Participants
from ..conversation.steps import AGENT, HUMAN
from ..conversation.transcript import Entry, opening_of
from ..protocol import Diagnostic, Foreign, Reading
from ..trace_builder import TraceBuilder
from .conversations import ConversationReader, by_session
from .spans import Span

__all__ = ("LiveTraces",)

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
        patience: the same for an incomplete trace.
        most: bytes that may wait; beyond that, the oldest trace is read even if incomplete.
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
        """Takes the spans that can be read now. Within one conversation, an earlier trace is read
        before a later one.

        Args:
            now: as for ``add``.
            everything: incomplete traces as well.

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


# --- records conversations while their spans come in, as the importer of files records them -------


_FORMAT: Final = "otlp"
_KNOWN: Final = 256  # sessions whose state is cached
_LOOK: Final = 0.2  # seconds between two looks at what waits
_TRIES: Final = 5  # to append while others write into the same session
_MOST: Final = 64 * 2**20


@final
class LiveTraces:
    """Takes spans for a log.

    Args:
        log: an open log; others may write it too.
        settle: seconds without another span after which a complete trace is recorded.
        patience: the same for an incomplete trace.
        most: bytes of spans that may wait.
    """

    def __init__(
        self, log: EventLog, *, settle: float = 1.0, patience: float = 30.0, most: int = _MOST
    ) -> None:
        self._log = log
        self._waiting = WaitingTraces(settle=settle, patience=patience, most=most)
        self._sessions: OrderedDict[str, _LiveSession] = OrderedDict()
        self._ready: list[list[Span]] = []
        self._recording = anyio.Lock()
        self._some = anyio.Event()
        self._logger = get_logger("traces")

    async def take(self, spans: Sequence[Span], size: int) -> dict[str, str]:
        """Takes spans that have come in; they are recorded a little later.

        Args:
            spans: in any order.
            size: bytes that they came in.

        Returns:
            By session, why it takes no spans; its spans are not kept.

        Raises:
            LogError: the log cannot be read.
        """
        refused: dict[str, str] = {}
        for session in {span.conversation for span in spans if span.conversation is not None}:
            why = await self._refusal(session)
            if why is not None:
                refused[session] = why
        kept = [span for span in spans if span.conversation not in refused]
        self._waiting.add(kept, size, anyio.current_time())
        self._some.set()
        return refused

    async def run(self) -> None:
        """Records what is ready, until it is cancelled."""
        while True:
            await self._some.wait()
            self._some = anyio.Event()
            while self._waiting or self._ready:
                await anyio.sleep(_LOOK)
                await self.record(anyio.current_time())

    async def record(self, now: float, *, everything: bool = False) -> None:
        """Records what is ready.

        Args:
            now: seconds, as the event loop has them.
            everything: incomplete traces as well, as before the program ends.
        """
        async with self._recording:
            self._ready += self._waiting.take(now, everything=everything)
            while self._ready:
                for session, spans in by_session(self._ready[0]).items():
                    if not await self._append(session, spans):
                        return  # the log cannot be written now: they stay, and are tried again
                del self._ready[0]

    async def _append(self, session: str, spans: Sequence[Span]) -> bool:
        """Records spans of one session; False if the log cannot be written now."""
        for _ in range(_TRIES):
            recorded = False
            try:
                held = await self._session(session)
                await held.record(spans)
                recorded = True
            except VersionConflict:  # another writer was faster
                continue
            except LogUnavailable as error:
                self._logger.warning("spans wait for the log", session=session, error=str(error))
                return False
            except DuologError as error:
                self._lost(session, spans, str(error))
            except Exception as error:  # noqa: BLE001  (logged: no span may keep others from being recorded)
                self._lost(session, spans, f"{type(error).__name__}: {error}")
            finally:
                if not recorded:  # also when cancelled: the state here no longer matches the log
                    self._sessions.pop(session, None)
            return True
        self._lost(session, spans, "others keep writing into it")
        return True

    def _lost(self, session: str, spans: Sequence[Span], why: str) -> None:
        self._logger.error("spans were not recorded", session=session, spans=len(spans), error=why)

    async def _session(self, session: str) -> _LiveSession:
        held = self._sessions.get(session)
        if held is None:
            held = self._sessions[session] = await _opened(self._log, session)
            if len(self._sessions) > _KNOWN:
                self._sessions.popitem(last=False)
        self._sessions.move_to_end(session)
        return held

    async def _refusal(self, session: str) -> str | None:
        try:
            summary = await self._log.summary(session)
        except SessionNotFound:
            return None
        if summary.state != "open":
            return f"session {session!r} is closed"
        if session in self._sessions:
            return None
        async for record in self._log.read(session):
            if not _is_ours(record.event):
                return f"session {session!r} is there already, and was not recorded from spans"
            break
        return None


@final
class _LiveSession:
    """One session, as far as it is recorded."""

    def __init__(self, log: EventLog, session: str) -> None:
        self._log = log
        self.builder = TraceBuilder(session)
        self.reader = ConversationReader()
        self.talk: ConversationBuilder | None = None
        self.seen: set[str] = set()
        self.participants = Participants((), (HUMAN, AGENT))

    async def record(self, spans: Sequence[Span]) -> None:
        """Records the contents of spans that are not recorded yet.

        Raises:
            DuologError: it could not be recorded; then discard this object's state.
        """
        new = [span for span in spans if span.key not in self.seen]
        before = self.builder.version
        # In a thread: each model call repeats the earlier messages.
        drafts = await anyio.to_thread.run_sync(self._drafts, new)
        if drafts:
            await self._log.append(self.builder.session, drafts, expected_version=before)
            self.seen.update(span.key for span in new)

    def _drafts(self, spans: Sequence[Span]) -> list[Draft]:
        entries = list(self.reader.read(spans))
        found = self._events(entries, spans) if entries else ()
        return [_storable(one) for one in found if isinstance(one, Foreign)]

    def _events(
        self, entries: Sequence[Entry], spans: Sequence[Span]
    ) -> list[Foreign | Diagnostic]:
        builder, found = self.builder, list[Foreign | Diagnostic]()
        steps = [step for entry in entries for step in entry.steps]
        if self.talk is None:
            transcript = self.reader.transcript(builder.session, entries, spans, _FORMAT, "", {})
            self.participants = transcript.participants
            opened = opening_of(transcript, Reading())
            start = transcript.start or 0.0
            found.append(builder.put(opened, ENVIRONMENT, "environment", start))
            self.talk = ConversationBuilder(
                builder, self.participants, transcript.models.get(AGENT)
            )
        self.participants.extend(steps)
        for entry in entries:
            now = builder.time if entry.time is None else entry.time
            found += self.talk.add(entry.number, entry.steps, now, entry.where)
        return found


async def _opened(log: EventLog, session: str) -> _LiveSession:
    """A session as the log has it.

    Raises:
        InvalidInput: the log has it from elsewhere.
        SessionClosedError: it is closed.
    """
    held = _LiveSession(log, session)
    records = [record async for record in log.read(session)]
    if not records:
        return held
    opened = records[0].event
    if not isinstance(opened, SessionOpened) or not _is_ours(opened):
        raise InvalidInput(f"session {session!r} was not recorded from spans")
    for record in records:
        held.builder.state.feed(record)
        held.participants.join(record.actor, record.role)
        if record.caller_id is not None:
            held.seen.add(record.caller_id.split("/", 2)[1].removesuffix("-in"))
    if held.builder.state.closed:
        raise SessionClosedError(session)
    held.builder.time = records[-1].time
    held.reader.resume(records)
    agent = next((one for one in opened.participants if one.role == "agent"), None)
    held.reader.main = agent.policy if agent is not None else None
    held.talk = ConversationBuilder(held.builder, held.participants, agent.model if agent else None)
    held.talk.resume(records)
    return held


def _is_ours(event: object) -> bool:
    if not isinstance(event, SessionOpened):
        return False
    imported = event.config.get("imported")
    return isinstance(imported, dict) and imported.get("format") == _FORMAT


def _storable(one: Foreign) -> Draft:
    """The event without secrets; what no log can hold of it is replaced by a text that says so."""
    if unfit(one.session, one.draft) is not None:
        event = storable(command_of(one.draft.event)).event
        one = one._replace(draft=msgspec.structs.replace(one.draft, event=event))
    fit = taken_in(one)
    if isinstance(fit, Diagnostic):
        raise InvalidInput(fit.what)
    return fit[0].draft
