"""Calls a webhook for each firing, and records each attempt, to avoid sending it twice.

The sender records each attempt before making it, at the known version of the session's stream of
alerts, so that only one of several servers makes it. An attempt without a recorded outcome was cut off,
and is made again after some time. So if a server is killed while sending, an alert may
arrive twice with the same id, but is never lost.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Sequence
from hashlib import sha256
from http.client import HTTPException
from typing import Final, Literal, NamedTuple, final
from urllib.error import HTTPError
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from ....engine.errors import (
    CheckpointConflict,
    InvalidInput,
    OutcomeUnknown,
    SessionClosedError,
    VersionConflict,
)
from ....engine.events import AlertSent
from ....engine.log.contract import EventLog
from ....engine.log.follower import CheckpointKey, Follower
from ....engine.log.session_states import SessionStates, read_before
from ....engine.logger import get_logger
from ....engine.records import Draft, Record
from ....scoring.trajectory.options import Options
from .firing import ALERTS, Firing, FiringFold, sent_by
from .rules import AlertRule, AlertRules

__all__ = (
    "AlertSender",
    "send_alerts",
    "webhook",
)


_KEPT: Final = 1024
_AT_ONCE: Final = 16  # alerts that are being sent, or wait for another attempt
_PACE: Final = 1.0  # seconds between two looks at how far all has been sent
_ERROR: Final = 300


async def send_alerts(
    log: EventLog,
    rules: AlertRules,
    send: Callable[[Firing], object],
    options: Options | None = None,
) -> None:
    """Sends the firings of a server's rules, and of those that are added, until it is cancelled.

    Args:
        log: the log.
        rules: the rules.
        send: see ``AlertSender``.
        options: how sessions are scored.

    Raises:
        LogError: the log cannot be read any more.
    """
    scopes: dict[AlertRule, anyio.CancelScope] = {}

    async def run(some: Sequence[AlertRule], scope: anyio.CancelScope) -> None:
        with scope:
            await AlertSender(log, some, send, options).run()

    async with anyio.create_task_group() as tasks:
        if rules.given:
            tasks.start_soon(run, rules.given, anyio.CancelScope())
        while True:
            for rule in rules.added:
                if rule not in scopes:
                    scopes[rule] = anyio.CancelScope()
                    tasks.start_soon(run, (rule,), scopes[rule])
            for rule in [one for one in scopes if one not in rules.added]:
                scopes.pop(rule).cancel()
            await rules.wait()


class _Sent(NamedTuple):
    """The last record about a firing, and the version of the session's stream of alerts."""

    last: AlertSent | None
    version: int


@final
class AlertSender:
    """Follows a log, and sends each firing of a rule once, and continues from its last run.
    When it first runs with some rules, it begins with records written from then on.

    Args:
        log: the log.
        rules: the rules.
        send: called in a thread with the firing; raises OSError if it was not taken.
        options: how sessions are scored.
        pauses: seconds between attempts; after the last of them comes the last attempt.
        lease: seconds after which an attempt without an outcome was cut off; longer than any pause
            and attempt together.
        now: the time in seconds since the epoch.
    """

    def __init__(
        self,
        log: EventLog,
        rules: Sequence[AlertRule],
        send: Callable[[Firing], object],
        options: Options | None = None,
        *,
        pauses: Sequence[float] = (1.0, 4.0, 15.0, 60.0),
        lease: float = 90.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._log = log
        self._rules = rules
        self._send = send
        self._options = options
        self._pauses = pauses
        self._lease = lease
        self._now = now
        self._folds: SessionStates[FiringFold] = SessionStates(_KEPT)
        self._places = anyio.Semaphore(_AT_ONCE)
        names = "\n".join(sorted(rule.text for rule in rules))
        key = CheckpointKey("alerts", sha256(names.encode()).hexdigest()[:16])
        self._follower = Follower(log, key=key, after_position=log.statistics().position)

    async def run(self) -> None:
        """Runs until it is cancelled.

        Raises:
            LogError: the log cannot be read any more.
        """
        async with self._follower as follower, anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_checkpoint)
            async for record in follower:
                fold = await follower.retry(lambda record=record: self._fold_before(record))  # type: ignore[misc]
                if fired := fold.feed(record):
                    await self._places.acquire()
                    tasks.start_soon(self._send_all, record, fired)
                else:
                    follower.done(record.position)

    async def _fold_before(self, record: Record) -> FiringFold:
        fold = self._folds.get(record.session)
        if fold is None:
            fold = FiringFold(record.session, self._rules, self._options)
            async for earlier in read_before(self._log, record):
                fold.feed(earlier)
        self._folds.keep(record.session, fold)
        return fold

    async def _keep_checkpoint(self) -> None:
        while True:
            await anyio.sleep(_PACE)
            if self._follower.has_uncommitted:
                try:
                    await self._follower.retry(self._follower.commit)
                except CheckpointConflict:  # another server keeps it too, and is further
                    continue

    # --- sending ----------------------------------------------------------------------------------

    async def _send_all(self, record: Record, fired: Sequence[Firing]) -> None:
        try:
            for firing in fired:
                await self._send_one(firing)
        except SessionClosedError:  # its contents were erased meanwhile
            pass
        finally:
            self._places.release()
        self._follower.done(record.position)

    async def _send_one(self, firing: Firing) -> None:
        own = 0  # the attempt after which this server makes another one
        while True:
            last, version = await self._follower.retry(lambda: self._sent(firing))
            if last is not None and last.outcome in ("delivered", "failed"):
                return
            attempt = 1 if last is None else last.attempt + 1
            if last is not None and last.attempt != own:
                left = last.at + self._lease - self._now()
                if left > 0:  # another server makes it, or one that was stopped
                    await anyio.sleep(left)
                    continue
                attempt = min(attempt, len(self._pauses) + 1)
            try:
                await self._record(firing, "sending", attempt, expected=version)
            except (VersionConflict, OutcomeUnknown):
                continue  # another server was faster, or the outcome is unknown: look again
            error = await self._attempt(firing)
            last_one = attempt > len(self._pauses)
            if not error:
                await self._record(firing, "delivered", attempt)
                return
            await self._record(firing, "failed" if last_one else "retrying", attempt, error)
            if last_one:
                self._complain(firing, error)
                return
            own = attempt
            await anyio.sleep(self._pauses[attempt - 1])

    async def _sent(self, firing: Firing) -> _Sent:
        last: AlertSent | None = None
        version = 0
        async for record in self._log.read(firing.session, stream=ALERTS):
            version = record.version
            sent = sent_by(record)
            if sent is not None and sent[0] == firing.key:
                last = sent[1]
        return _Sent(last, version)

    async def _attempt(self, firing: Firing) -> str:
        """Why the webhook did not take it; empty if it did."""
        try:
            await anyio.to_thread.run_sync(self._send, firing, abandon_on_cancel=True)
        except (OSError, HTTPException) as error:
            return str(error)[:_ERROR] or type(error).__name__
        return ""

    async def _record(
        self,
        firing: Firing,
        outcome: Literal["sending", "retrying", "delivered", "failed"],
        attempt: int,
        error: str = "",
        *,
        expected: int | None = None,
    ) -> None:
        event = AlertSent(firing.rule, outcome, attempt, self._now(), error)
        draft = Draft(event, "workbench", "scorer", firing.time, cause=firing.cause)

        async def append() -> None:
            await self._log.append(
                firing.session, [draft], stream=ALERTS, expected_version=expected
            )

        await self._follower.retry(append)

    def _complain(self, firing: Firing, error: str) -> None:
        get_logger("workbench").error(
            "a webhook did not take an alert",
            rule=firing.rule,
            session=firing.session,
            error=error,
        )


_PATIENCE: Final = 10.0  # seconds that it has to answer


def webhook(address: str) -> Callable[[Firing], None]:
    """A function that calls a webhook. It raises OSError if the webhook rejects a firing.

    A firing has one ``id``, however often it is sent, so that a receiver can skip duplicates.

    Raises:
        InvalidInput: the address is not an HTTP address.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"a webhook must be an http or https URL, got {address!r}")

    def send(firing: Firing) -> None:
        named = f"{firing.rule}\n{firing.session}\n{firing.cause}"
        body = {
            "id": sha256(named.encode()).hexdigest()[:32],
            "rule": firing.rule,
            "session": firing.session,
            "record": firing.record,
            "position": firing.position,
        }
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(address, json.dumps(body).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
                answer.read(1)
        except HTTPError as error:  # holds the answer open
            error.close()
            raise

    return send
