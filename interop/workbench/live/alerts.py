"""Alert rules: queries over sessions. What fired follows from the log; a webhook is sent what is new."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, final
from urllib.error import URLError
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from ....engine.errors import InvalidInput, SessionNotFound
from ....engine.log.contract import EventLog
from ....engine.log.follower import Follower
from ....engine.logger import get_logger
from ....scoring.listing.query import SessionQuery, parse_query, split_query
from ....scoring.listing.sessions import listed_session

__all__ = ("AlertRule", "Alerts", "Fired", "parse_rule", "webhook")

_PACE: Final = 0.5  # seconds between two looks
_TRIES: Final = 3
_PATIENCE: Final = 10.0  # seconds that a webhook has to answer
_KNOWN: Final = 100_000  # sessions that a rule is known to have fired for


class AlertRule(NamedTuple):
    """A rule: it fires for every session that meets its query.

    Attributes:
        text: as it was written.
        query: what sessions have to meet.
    """

    text: str
    query: SessionQuery


class Fired(NamedTuple):
    """A rule fired: which, for which session, and up to which position of the log it was looked at."""

    rule: str
    session: str
    position: int


def parse_rule(text: str) -> AlertRule:
    """A rule as it is written: a query as ``duolog sessions`` takes it.

    Raises:
        InvalidInput: it makes no sense, or says nothing.
    """
    query = parse_query(split_query(text))
    if not query:
        raise InvalidInput("an alert is a query, such as 'tau=2 agent=two-stage'")
    return AlertRule(text.strip(), query)


@final
class Alerts:
    """Follows a log, and calls somebody once for each session that begins to meet a rule.

    One that met it before this began fires with its next record.

    Args:
        log: the log.
        rules: the rules.
        send: called in a thread with what fired.
        pace: seconds between two looks at what has changed.
    """

    def __init__(
        self,
        log: EventLog,
        rules: Sequence[AlertRule],
        send: Callable[[Fired], object],
        *,
        pace: float = _PACE,
    ) -> None:
        self._log = log
        self._rules = rules
        self._send = send
        self._pace = pace
        self._touched: dict[str, int] = {}
        self._met: dict[tuple[str, str], bool] = {}

    async def run(self) -> None:
        """Runs until it is cancelled.

        Raises:
            LogError: the log cannot be read any more.
        """
        follower = Follower(self._log, after_position=self._log.statistics().position)
        async with follower, anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, follower)
            while True:
                await follower.retry(self._look)
                await anyio.sleep(self._pace)

    async def _follow(self, follower: Follower) -> None:
        async for record in follower:
            self._touched[record.session] = record.position
            follower.done(record.position)

    async def _look(self) -> None:
        touched, self._touched = self._touched, {}
        for session, position in touched.items():
            for rule in self._rules:
                if await self._begins(rule, session):
                    await self._notify(Fired(rule.text, session, position))

    async def _begins(self, rule: AlertRule, session: str) -> bool:
        """Whether a session meets a rule that it did not meet before."""
        try:
            summary = await self._log.summary(session)
        except SessionNotFound:
            return False
        met = rule.query.admits(summary)
        if met and (rule.query.utility or rule.query.tolerances):
            line = await listed_session(self._log, summary, rule.query.taus)
            met = rule.query.admits_measures(line.summary.utility, line.stops or {})
        key = (rule.text, session)
        before = self._met.pop(key, False)
        if met:
            self._met[key] = True
            if len(self._met) > _KNOWN:
                del self._met[next(iter(self._met))]
        return met and not before

    async def _notify(self, fired: Fired) -> None:
        for attempt in range(_TRIES):
            try:
                await anyio.to_thread.run_sync(self._send, fired, abandon_on_cancel=True)
            except (OSError, URLError) as error:
                if attempt == _TRIES - 1:
                    get_logger("workbench").error(
                        "a webhook did not take an alert",
                        rule=fired.rule,
                        session=fired.session,
                        error=str(error),
                    )
                await anyio.sleep(2**attempt * _PACE)
            else:
                return


def webhook(address: str) -> Callable[[Fired], object]:
    """What notifies a webhook: a POST of JSON for each alert.

    Raises:
        InvalidInput: the address is none of HTTP.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"a webhook is an address of http or https, not {address!r}")

    def send(fired: Fired) -> None:
        body = json.dumps(fired._asdict()).encode()
        request = urllib.request.Request(
            address, body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            answer.read(1)

    return send
