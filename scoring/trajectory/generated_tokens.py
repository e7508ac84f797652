"""Tokens that each side generated: as its models counted them, else estimated from its texts."""

from __future__ import annotations

from typing import Literal, final

import msgspec

from ...engine.events import ModelCalled, Tokens
from ...engine.records import Record

__all__ = ("Generated", "Party")

Party = Literal["agent", "human"]


class _Called(msgspec.Struct, frozen=True):
    """The part of ``ModelCalled`` that is needed here; the reply is skipped unread."""

    tokens: Tokens = Tokens()


_decode = msgspec.json.Decoder(_Called).decode


class _Account:
    __slots__ = ("calls", "produced", "uncounted")

    def __init__(self) -> None:
        self.calls = 0
        self.uncounted = 0
        self.produced = 0


@final
class Generated:
    """Adds up, per actor, completion tokens of its model calls and tokens of the texts it produced.

    An actor has generated what its calls report as completions; an actor none of whose calls
    reports any has generated the tokens of its texts, which is an estimate. So is a sum of calls
    some of which do not say.
    """

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}
        self._totals: dict[Party, int] = {"agent": 0, "human": 0}

    def produced(self, actor: str, party: Party, tokens: int) -> None:
        """An actor produced a text of this many tokens."""
        account = self._accounts.get(actor) or self._account(actor)
        account.produced += tokens
        if not account.calls:
            self._totals[party] += tokens

    def called(self, actor: str, party: Party, record: Record) -> None:
        """An actor's model was called, successfully or not."""
        tokens = _tokens(record)
        if tokens is None:
            return
        account = self._accounts.get(actor) or self._account(actor)
        if tokens.completion is None:
            account.uncounted += 1
            return
        if not account.calls:  # from here on its texts do not count
            self._totals[party] -= account.produced
        account.calls += 1
        self._totals[party] += tokens.completion

    def tokens(self, party: Party) -> int:
        """Tokens that one side has generated so far."""
        return self._totals[party]

    @property
    def estimated(self) -> bool:
        """Whether anything in these sums is an estimate."""
        return any(
            account.uncounted if account.calls else account.produced
            for account in self._accounts.values()
        )

    def _account(self, actor: str) -> _Account:
        account = self._accounts[actor] = _Account()
        return account


def _tokens(record: Record) -> Tokens | None:
    if record.body is None:  # forgotten
        return None
    if record.schema == ModelCalled.schema:
        try:
            return _decode(record.body).tokens
        except msgspec.MsgspecError:
            pass  # decoded in full below, which says what is wrong with it
    event = record.event
    return event.tokens if isinstance(event, ModelCalled) else None
