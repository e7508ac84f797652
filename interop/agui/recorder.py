"""Records what a running app and its front end exchange over AG-UI into a session."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable
from typing import Final, ParamSpec, TypeVar, final

import anyio

from ...engine.errors import DuologError, LogUnavailable, SessionClosedError
from ...engine.events import Role
from ...engine.log.contract import EventLog
from ...engine.logger import get_logger
from ...engine.records import ENVIRONMENT
from ...telemetry.actor import RecordedActor
from ...telemetry.receipt import Awaited
from ...telemetry.session import Recording
from ..importers.protocol import Diagnostic
from .assembler import Assembler
from .decoder import AguiDecoder
from .entries import AguiEntry
from .json_patch import parse_pointer
from .parse import AguiInput, Unreadable, parse_events
from .thread_index import ThreadIndex, load_thread_index

__all__ = ("AguiRecorder",)

_DIAGNOSTICS: Final = 100
_BATCH: Final = 256
_PATIENCE: Final = 5.0  # seconds to wait for what others have handed over for the session

G = TypeVar("G", bound=AguiInput)
P = ParamSpec("P")


@final
class AguiRecorder:
    """Records one thread.

    Messages of people and agents are recorded as messages; tool calls are actions with their
    results; the shared state, or the part of it that is named, is the shared output; reasoning is
    the agent's own note; an interrupt is recorded as a request for approval. Everything else is
    kept as it came, in an event of the kind ``agui.`` and its type, which scoring passes over.
    Nothing is recorded twice: a stream that is repeated, or a history that is sent along with each
    request, adds what is new.

    Nothing that comes is lost and nothing that comes is an error: what cannot be read, or does not
    fit, is kept, with a diagnostic on it in ``diagnostics`` and in the program's log.

    Args:
        log: holds the session.
        session: what to record into; its id is the thread's.
        output: where the shared output is in the state, as a JSON Pointer such as ``/draft``; all
            of the state, if left out.

    Attributes:
        diagnostics: what was wrong, the first hundred.
        problems: how much there was.

    Raises:
        InvalidInput: ``output`` is not a pointer.
    """

    def __init__(self, log: EventLog, session: Recording[Awaited], *, output: str = "") -> None:
        self._log = log
        self._session = session
        self._output = output
        parse_pointer(output)  # raises if it is not a pointer
        self._decoder: AguiDecoder | None = None
        self._pieces = Assembler()
        self._one_by_one = anyio.Lock(fast_acquire=True)
        self._handed = 0  # to the session, since it was flushed
        self.diagnostics: list[Diagnostic] = []
        self.problems = 0

    async def take_input(self, given: AguiInput) -> None:
        """Takes a request to run the agent: the human's messages, changes and answers.

        Args:
            given: a ``RunAgentInput``, as an object, a model, or JSON.

        Raises:
            SessionClosedError: the session is closed, and there is something new.
            LogError: the log cannot be read, or is closed.
        """
        async with self._one_by_one:
            decoder = await self._begin()
            for found in parse_events(given):
                if isinstance(found, Unreadable):
                    await self._put(decoder.decode_unreadable(found))
                else:
                    await self._put(decoder.decode_request(found))

    async def take(self, given: AguiInput) -> None:
        """Takes an event of the app's stream, in the form that it comes in.

        Args:
            given: an event as an object, a model of ``ag_ui.core``, or JSON; or server-sent events
                in text, whole lines of them.

        Raises:
            SessionClosedError: the session is closed, and this is new.
            LogError: the log cannot be read, or is closed.
        """
        async with self._one_by_one:
            decoder = await self._begin()
            for found in parse_events(given):
                if isinstance(found, Unreadable):
                    await self._put(decoder.decode_unreadable(found))
                    continue
                for whole in self._pieces.take(found):
                    await self._put(decoder.decode(whole))

    async def finish(self) -> None:
        """Takes note that the stream is over; what never ended is recorded as far as it came.

        Raises:
            SessionClosedError: the session is closed, and this is new.
            LogError: the log cannot be read, or is closed.
        """
        async with self._one_by_one:
            if self._decoder is not None:
                for whole in self._pieces.finish():
                    await self._put(self._decoder.decode(whole))

    async def record(self, events: AsyncIterable[AguiInput]) -> None:
        """Takes all events of a stream, as fast as they can be written; raises as ``take``."""
        try:
            async for event in events:
                await self.take(event)
                if self._handed >= _BATCH:
                    self._handed = 0
                    await self._session.flush()
        finally:
            with anyio.CancelScope(shield=True):
                await self.finish()

    async def tap(
        self, events: AsyncIterable[G], *, request: AguiInput | None = None
    ) -> AsyncGenerator[G, None]:
        """Passes a stream on as it is, and records it on the way.

        Recording errors are logged and counted, and never reach the stream.

        Args:
            events: the app's stream.
            request: what it answers, to be taken first, see ``take_input``.
        """
        try:
            if request is not None:
                await self._quietly(self.take_input, request)
            async for event in events:
                await self._quietly(self.take, event)
                yield event
        finally:
            with anyio.CancelScope(shield=True):
                await self._quietly(self.finish)

    async def _quietly(self, take: Callable[P, Awaitable[None]], *a: P.args, **k: P.kwargs) -> None:
        try:
            await take(*a, **k)
        except DuologError as error:
            self._diagnostic(f"an event could not be recorded: {error}")

    # --- into the log -----------------------------------------------------------------------------

    async def _begin(self) -> AguiDecoder:
        if self._decoder is None:
            known = ThreadIndex(self._output)
            with anyio.move_on_after(_PATIENCE):
                await self._session.flush()
            try:
                known = await load_thread_index(self._log, self._session.id, self._output)
            except LogUnavailable as error:
                # The ids still keep what comes again from being recorded twice.
                self._diagnostic(f"what the log holds already could not be read: {error}")
            self._decoder = AguiDecoder(known, [self._first("agent").name])
        return self._decoder

    async def _put(self, found: Iterable[AguiEntry]) -> None:
        for entry in found:
            if entry.problem is not None:
                self._diagnostic(entry.problem)
            if entry.do is None:
                continue
            if self._session.closed:
                raise SessionClosedError(self._session.id)
            at = time.time() if entry.at is None else entry.at
            receipt = await entry.do(self._actor(entry), at)
            self._handed += 1
            if entry.done is not None:
                entry.done(receipt)

    def _actor(self, entry: AguiEntry) -> RecordedActor[Awaited]:
        """The actor: by name, else the first of that role."""
        session = self._session
        if entry.role == "environment":
            return session.actor(entry.name or ENVIRONMENT, role="environment")
        return self._named(entry.name, entry.role) if entry.name else self._first(entry.role)

    def _first(self, role: Role) -> RecordedActor[Awaited]:
        try:
            return self._session.human if role == "human" else self._session.agent
        except DuologError:  # the session was opened without one
            return self._named(role, role)

    def _named(self, name: str, role: Role) -> RecordedActor[Awaited]:
        try:
            return self._session.actor(name, role=role)
        except DuologError:  # another actor has that name, or the log refuses new actors
            return self._session.actor(f"{name} ({role})", role=role)

    def _diagnostic(self, what: str) -> None:
        self.problems += 1
        if len(self.diagnostics) < _DIAGNOSTICS:
            session = self._session.id
            self.diagnostics.append(Diagnostic("problem", what, f"session {session}", session))
        if self.problems & (self.problems - 1) == 0:
            get_logger("agui").warning(
                "a stream is not as it should be",
                session=self._session.id,
                what=what,
                problems=self.problems,
            )
