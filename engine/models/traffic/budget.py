"""An experiment's budget, and the use that a log records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import final

import msgspec

from ...errors import BudgetExhausted, InvalidInput
from ...events import ModelCalled
from ...log.contract import EventLog
from ...log.follower import Follower
from ...records import TRACE, Record
from ...text import quantity
from ..protocol import Asker, ModelReply

__all__ = ("Budget", "Spending", "follow_spending", "spending")


@final
class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of calls.

    Attributes:
        calls: attempts, failed ones too.
        failures: attempts that failed.
        cached: replies from the response cache, which cost nothing.
        prompt: prompt tokens, as far as they were counted, without those of cached replies.
        completion: completion tokens, likewise.
        cost: US dollars, of the replies whose price is known.
        unpriced: replies whose price is not known.
    """

    calls: int = 0
    failures: int = 0
    cached: int = 0
    prompt: int = 0
    completion: int = 0
    cost: float = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens."""
        return self.prompt + self.completion

    def after(self, reply: ModelReply | None) -> Spending:
        """This, and another reply; None for an attempt that failed."""
        if reply is None:
            return msgspec.structs.replace(self, calls=self.calls + 1, failures=self.failures + 1)
        if reply.from_cache:
            return msgspec.structs.replace(self, calls=self.calls + 1, cached=self.cached + 1)
        return msgspec.structs.replace(
            self,
            calls=self.calls + 1,
            prompt=self.prompt + (reply.tokens.prompt or 0),
            completion=self.completion + (reply.tokens.completion or 0),
            cost=self.cost + (reply.cost or 0.0),
            unpriced=self.unpriced + (reply.cost is None),
        )


@final
class Budget:
    """The budget that all sessions of an experiment share, judges included.

    It stops calls, not sessions. The call that reaches the budget still counts, and so do calls under
    way at that time; the next one is not made. (A single session is limited by its ``Limits``.)

    Args:
        tokens: prompt and completion tokens; None for no limit.
        cost: US dollars; None for no limit.
        spent: the spending of earlier runs; see ``spending``.

    Attributes:
        spent: the spending so far.

    Raises:
        InvalidInput: a limit below 0.
    """

    def __init__(
        self,
        *,
        tokens: int | None = None,
        cost: float | None = None,
        spent: Spending | None = None,
    ) -> None:
        for name, value in (("tokens", tokens), ("cost", cost)):
            if value is not None and value < 0:
                raise InvalidInput(f"a budget of {name} must be at least 0, got {value}")
        self._tokens = tokens
        self._cost = cost
        self.spent = spent or Spending()
        self._unseen: Counter[Asker] = Counter()  # calls of this process, not seen in the log yet

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self._tokens is not None or self._cost is not None

    def spend(self, asker: Asker | None, reply: ModelReply | None) -> None:
        """Counts a call of this process; None for an attempt that failed."""
        self.spent = self.spent.after(reply)
        if asker is not None:
            self._unseen[asker] += 1

    def note_recorded(self, asker: Asker, reply: ModelReply | None) -> None:
        """Counts a call that the log holds, unless it is one of this process, counted already."""
        left = self._unseen.pop(asker, 0)
        if not left:
            self.spent = self.spent.after(reply)
        elif left > 1:
            self._unseen[asker] = left - 1

    @property
    def exhausted(self) -> str | None:
        """Why no further call may be made; None while one may."""
        spent = self.spent
        if self._tokens is not None and spent.tokens >= self._tokens:
            return f"{spent.tokens} tokens are used up, of {self._tokens}"
        if self._cost is not None and spent.cost >= self._cost:
            return f"{spent.cost:.4f} US dollars are spent, of {self._cost}"
        if self._cost is not None and spent.unpriced:
            return (
                f"{quantity(spent.unpriced, 'call')} had no known price, so that a budget of {self._cost} US "
                "dollars cannot be kept; set their prices, or limit tokens instead"
            )
        return None

    def check(self) -> None:
        """Refuses the next call.

        Raises:
            BudgetExhausted: nothing is left, or that is unknown.
        """
        why = self.exhausted
        if why is not None:
            raise BudgetExhausted(f"the budget of the experiment is used up: {why}")


async def spending(
    log: EventLog, *, by: Container[str] | None = None, upto: int | None = None
) -> Spending:
    """The totals of the calls in a log, including those of judges.

    Args:
        log: the log.
        by: only the calls of these actors, scorers by their names; None for all.
        upto: only calls at positions up to this one; None for all.
    """
    spent = Spending()
    async for record in log.read_all():
        if upto is not None and record.position > upto:
            break
        if by is None or record.actor in by:
            called = _called(record)
            spent = spent if called is None else spent.after(_reply(called))
    return spent


async def follow_spending(
    log: EventLog, budget: Budget, *, after_position: int, by: Container[str] | None = None
) -> None:
    """Counts calls of other processes in the log towards a budget, until it is cancelled.

    Args:
        log: the log.
        budget: the budget, which this process shares.
        after_position: position up to which the budget already counts the log's calls.
        by: only the calls of these actors, scorers by their names; None for all.
    """
    async with Follower(log, after_position=after_position) as follower:
        async for record in follower:
            called = _called(record) if by is None or record.actor in by else None
            if called is not None:
                actor = record.actor if record.stream == TRACE else record.stream
                budget.note_recorded(Asker(record.session, actor), _reply(called))
            follower.done(record.position)


def _called(record: Record) -> ModelCalled | None:
    event = record.event if record.kind == "ModelCalled" else None
    return event if isinstance(event, ModelCalled) else None


def _reply(event: ModelCalled) -> ModelReply | None:
    if event.error is not None:
        return None
    cached = isinstance(event.reply, dict) and bool(event.reply.get("from_cache"))
    return ModelReply(tokens=event.tokens, cost=event.cost, from_cache=cached)
