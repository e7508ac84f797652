"""Alert rules: queries over sessions. A rule fires when a session begins to meet it."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from ....engine.errors import InvalidInput
from ....engine.log.contract import SessionSummary
from ....scoring.index.query import SessionQuery, parse_query, split_query

__all__ = ("AlertRule", "may_have_met", "parse_rule")


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


def may_have_met(rule: AlertRule, summary: SessionSummary) -> bool:
    """Whether a session can have met a rule at any moment, as far as its summary says.

    What a session is about does not change once it is open, so most sessions need not be read.
    """
    query = rule.query
    states = {"open", summary.state}  # a session that is closed stays so
    lasting = SessionQuery(texts=query.texts)
    return any(lasting.admits(replace(summary, state=state)) for state in states)
