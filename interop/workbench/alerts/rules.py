"""Alert rules: queries over sessions. A rule fires when a session begins to meet it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, final

import anyio
from msgspec.structs import replace

from ....engine.errors import InvalidInput
from ....engine.log.contract import SessionSummary
from ....scoring.index.query import SessionQuery, parse_query, split_query

__all__ = ("AlertRule", "AlertRules", "may_have_met", "parse_rule")

_MOST: Final = 50  # rules of a server
_LENGTH: Final = 400  # characters of a rule


class AlertRule(NamedTuple):
    """A rule: it fires for every session that begins to meet its query.

    Attributes:
        text: as it was written.
        query: what sessions have to meet.
    """

    text: str
    query: SessionQuery


def parse_rule(text: str) -> AlertRule:
    """A rule as it is written: a query as ``duolog sessions`` takes it.

    Raises:
        InvalidInput: it makes no sense, or says nothing.
    """
    query = parse_query(split_query(text))
    if not query:
        raise InvalidInput("an alert is a query, such as 'tau=2 agent=two-stage'")
    if query.asks_reviews:
        raise InvalidInput(
            f"an alert is about what happens in a session, not about its reviews: {text.strip()!r}"
        )
    return AlertRule(text.strip(), query)


@final
class AlertRules:
    """The rules of a server: those it was started with, and those that operators add meanwhile.

    Args:
        rules: those it was started with, which stay.

    Attributes:
        revision: grows with each change.
    """

    def __init__(self, rules: Sequence[AlertRule] = ()) -> None:
        self.given = tuple(rules)
        self.added: tuple[AlertRule, ...] = ()
        self.revision = 0
        self._changed = anyio.Event()

    @property
    def all(self) -> tuple[AlertRule, ...]:
        """The rules now."""
        return (*self.given, *self.added)

    def add(self, text: str, labels: Collection[str] | None = None) -> AlertRule:
        """Adds a rule.

        Args:
            text: the query.
            labels: the labels that sessions have; None for any.

        Raises:
            InvalidInput: it makes no sense, is there already, or is one too many.
        """
        if len(text) > _LENGTH:
            raise InvalidInput(f"an alert has at most {_LENGTH} characters")
        rule = parse_rule(text)
        if labels is not None:
            rule.query.check_labels(labels)
        if any(rule.text == one.text for one in self.all):
            raise InvalidInput(f"there is an alert {rule.text!r} already")
        if len(self.all) >= _MOST:
            raise InvalidInput(f"there are {_MOST} alerts, the most that a server has: remove one")
        self._change((*self.added, rule))
        return rule

    def remove(self, text: str) -> None:
        """Removes a rule that was added.

        Raises:
            InvalidInput: there is no such rule, or the server was started with it.
        """
        if any(text == one.text for one in self.given):
            raise InvalidInput(f"the workbench was started with the alert {text!r}, so it stays")
        rest = tuple(one for one in self.added if one.text != text)
        if len(rest) == len(self.added):
            raise InvalidInput(f"unknown alert {text[:_LENGTH]!r}")
        self._change(rest)

    def _change(self, added: tuple[AlertRule, ...]) -> None:
        self.added = added
        self.revision += 1
        self._changed.set()
        self._changed = anyio.Event()

    async def wait(self) -> None:
        """Waits for the next change."""
        await self._changed.wait()


def may_have_met(rule: AlertRule, summary: SessionSummary) -> bool:
    """Whether a session can have met a rule at any moment, as far as its summary says.

    What a session is about does not change once it is open, so most sessions need not be read.
    """
    query = rule.query
    states = {"open", summary.state}  # a session that is closed stays so
    lasting = SessionQuery(texts=query.texts)
    return any(lasting.admits(replace(summary, state=state)) for state in states)
