"""Records the calls that a product makes through LiteLLM, from its callbacks."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple, Protocol, final

import anyio
import msgspec

from ...engine.errors import DuologError
from ...engine.logger import get_logger
from ...engine.plugins import PluginCall
from ...engine.session.commands import RecordEvent
from ...telemetry.queue import QueuedCommand
from ...telemetry.receipt import Receipt
from ...telemetry.recorder import Recorder
from ...telemetry.session import About, check_about
from .calls import call_id, model_called, owner_of

__all__ = ("CallRecorder", "CallWaiter", "EmbeddedLog", "LiteLLMStatistics")

_CALLS: Final = 10_000  # ids of calls that are remembered
_POLL: Final = 0.005  # seconds between looks whether calls are over


class EmbeddedLog(Protocol):
    """A log that is embedded in a product: ``Log`` or ``SyncLog``."""

    @property
    def recorder(self) -> Recorder:
        """The log that receives events."""
        ...


class LiteLLMStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a logger of LiteLLM calls.

    Attributes:
        recorded: calls handed over to the log.
        repeated: calls that LiteLLM reported again, and that were left out.
        skipped: calls whose metadata name no session.
        failed: calls that could not be handed over: there was no room, or the log is closed, or
            LiteLLM reported something unexpected.
        under_way: calls that were begun and are not over, as far as LiteLLM reported.
    """

    recorded: int = 0
    repeated: int = 0
    skipped: int = 0
    failed: int = 0
    under_way: int = 0


class CallWaiter(Protocol):
    """The methods that ``litellm_logger`` adds for products to the hooks that LiteLLM calls."""

    async def settle(self, session: str | None = None, seconds: float = 10.0) -> bool:
        """Waits until LiteLLM has reported all calls that were begun.

        Args:
            session: only the calls of this one.
            seconds: how long to wait at most.

        Returns:
            Whether it has.
        """
        ...

    def wait(self, session: str | None = None, seconds: float = 10.0) -> bool:
        """The same for threads without an event loop."""
        ...

    def statistics(self) -> LiteLLMStatistics:
        """How many calls were recorded, repeated, skipped, failed, and are under way."""
        ...


class _CallOutcome(NamedTuple):
    """Distinguishes the attempts of a call, since LiteLLM may report each more than once."""

    failed: bool
    began: datetime


@final
class CallRecorder:
    """Takes LiteLLM's reports of calls, from any thread, and hands them over to a log.

    Args:
        log: an open ``Log`` or ``SyncLog``.
        about: what a session is about that no one has opened before its first call.

    Raises:
        InvalidInput: a name that ``About`` has not.
    """

    def __init__(self, log: EmbeddedLog, about: About) -> None:
        check_about(about)
        get_logger("litellm")  # so that it is loaded before anything is wrong
        self._log = log
        self._about = about
        # Protects what follows.
        self._lock = threading.Lock()
        self._told: OrderedDict[str, list[_CallOutcome]] = OrderedDict()
        self._begun: OrderedDict[str, str] = OrderedDict()  # sessions by the ids of calls
        self._recorded = self._repeated = self._skipped = self._failed = 0

    def begin(self, details: Mapping[str, object]) -> None:
        """Takes note of a call that is about to be made."""
        try:
            with PluginCall("LiteLLM"):
                owner, call = owner_of(details), call_id(details)
            if owner is None or not call:
                return
            with self._lock:
                self._begun[call] = owner.session
                if len(self._begun) > _CALLS:
                    self._begun.popitem(last=False)
        except Exception as error:  # noqa: BLE001  (logged, and counted)
            self._complain("a call could not be noted", error)

    def end(
        self, details: Mapping[str, object], response: object, began: datetime, ended: datetime
    ) -> None:
        """Records a call that is over."""
        call = ""
        try:
            with PluginCall("LiteLLM"):
                call = call_id(details)
                self._record(details, call, response, began, ended)
        except Exception as error:  # noqa: BLE001  (logged, and counted)
            self._complain("a call could not be recorded", error)
        finally:
            with self._lock:
                self._begun.pop(call, None)

    def _record(
        self,
        details: Mapping[str, object],
        call: str,
        response: object,
        began: datetime,
        ended: datetime,
    ) -> None:
        owner = owner_of(details)
        attempt = self._attempt(
            call, _CallOutcome(response is None, began), known=owner is not None
        )
        if owner is None or attempt is None:
            return
        event = model_called(details, response, began, ended, attempt)
        recorder = self._log.recorder
        queue = recorder.queue_nowait(owner.session, self._about)
        names = {one.name: one.role for one in queue.opened.participants}
        ident = f"litellm/{call}" if attempt == 1 else f"litellm/{call}/{attempt}"
        entry = QueuedCommand(
            "called_model",
            RecordEvent(event),
            owner.actor,
            names.get(owner.actor, owner.role),
            ended.timestamp(),
            Receipt(owner.session),
            ident if call else None,
        )
        if not recorder.hand_over(queue, entry):  # its callers wait for room; LiteLLM must not
            recorder.intake.drop(queue, entry)
        with self._lock:
            if entry.receipt.error is None:
                self._recorded += 1
            else:
                self._failed += 1

    def _attempt(self, call: str, outcome: _CallOutcome, *, known: bool) -> int | None:
        """Which attempt of its call this is; None if LiteLLM reported it before."""
        with self._lock:
            if not known:
                self._skipped += 1
                return None
            if not call:
                return 1
            outcomes = self._told.setdefault(call, [])
            self._told.move_to_end(call)
            if len(self._told) > _CALLS:
                self._told.popitem(last=False)
            if outcome in outcomes:
                self._repeated += 1
                return None
            outcomes.append(outcome)
            return len(outcomes)

    def _complain(self, what: str, error: Exception) -> None:
        with self._lock:
            self._failed += 1
            count = self._failed
        if count & (count - 1) == 0:
            expected = isinstance(error, DuologError)
            get_logger("litellm").warning(
                what,
                failed=count,
                error=f"{type(error).__name__}: {error}",
                exc_info=None if expected else error,
            )

    def under_way(self, session: str | None) -> bool:
        """Whether calls are not over yet: of a session, or of all."""
        with self._lock:
            return bool(self._begun) if session is None else session in self._begun.values()

    async def settle(self, session: str | None, seconds: float) -> bool:
        """Waits until calls are over; whether they are."""
        with anyio.move_on_after(seconds):
            # LiteLLM reports a call on any thread, and none of them owes this loop a call.
            while self.under_way(session):  # noqa: ASYNC110
                await anyio.sleep(_POLL)
        return not self.under_way(session)

    def wait(self, session: str | None, seconds: float) -> bool:
        """The same in a thread without an event loop."""
        until = time.monotonic() + seconds
        pause = threading.Event()
        while self.under_way(session) and time.monotonic() < until:
            pause.wait(_POLL)
        return not self.under_way(session)

    def statistics(self) -> LiteLLMStatistics:
        """The state of the recorder."""
        with self._lock:
            return LiteLLMStatistics(
                recorded=self._recorded,
                repeated=self._repeated,
                skipped=self._skipped,
                failed=self._failed,
                under_way=len(self._begun),
            )
