"""Budgets: which calls count, when they are used up, and the spending that a log shows."""

from __future__ import annotations

from functools import partial

import anyio
import pytest
from duolog.engine.errors import BudgetExhausted, InvalidInput
from duolog.engine.events import ModelCalled, Tokens
from duolog.engine.log.open import open_log
from duolog.engine.models import Budget, ModelReply, Spending, spending
from duolog.engine.models.protocol import Asker
from duolog.engine.models.traffic.budget import follow_spending
from duolog.engine.records import Draft
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

REPLY = ModelReply(tokens=Tokens(prompt=70, completion=30, cached=50), cost=0.25)


def spend(budget: Budget, reply: ModelReply | None) -> None:
    budget.spent = budget.spent.after(reply)


def test_tokens_are_used_up_by_the_call_that_reaches_the_limit() -> None:
    budget = Budget(tokens=200)
    spend(budget, REPLY)
    budget.check()
    spend(budget, REPLY)
    with pytest.raises(BudgetExhausted, match="200 tokens are used up, of 200"):
        budget.check()


def test_money_is_used_up() -> None:
    budget = Budget(cost=0.5, spent=Spending(cost=0.2))
    budget.check()
    spend(budget, REPLY)
    budget.check()
    spend(budget, REPLY)
    with pytest.raises(BudgetExhausted, match=r"0\.7000 US dollars are spent, of 0\.5"):
        budget.check()


def test_a_price_that_is_not_known_is_no_price_of_zero() -> None:
    budget = Budget(cost=100.0)
    spend(budget, ModelReply(tokens=Tokens(prompt=1, completion=1)))
    with pytest.raises(BudgetExhausted, match="1 call had no known price"):
        budget.check()
    unlimited = Budget(tokens=1000)
    spend(unlimited, ModelReply(tokens=Tokens(prompt=1, completion=1)))
    unlimited.check()


def test_failures_and_cached_replies_cost_nothing() -> None:
    budget = Budget(tokens=1, cost=0.001)
    spend(budget, None)
    spend(budget, ModelReply(tokens=Tokens(prompt=99), cost=0.0, from_cache=True))
    budget.check()
    assert budget.spent == Spending(calls=2, failures=1, cached=1)


def test_less_than_nothing_is_no_budget() -> None:
    with pytest.raises(InvalidInput, match="a budget of tokens must be at least 0, got -1"):
        Budget(tokens=-1)
    with pytest.raises(InvalidInput, match=r"a budget of cost must be at least 0, got -0\.5"):
        Budget(cost=-0.5)


def test_nothing_is_a_budget() -> None:
    with pytest.raises(BudgetExhausted):
        Budget(cost=0.0).check()


prices = st.none() | st.integers(0, 100).map(float)
calls = st.lists(
    st.none()
    | st.builds(
        ModelReply,
        tokens=st.builds(
            Tokens, prompt=st.none() | st.integers(0, 99), completion=st.none() | st.integers(0, 99)
        ),
        cost=prices,
    )
)


@given(calls)
def test_spending_adds_up(replies: list[ModelReply | None]) -> None:
    spent = Spending()
    for reply in replies:
        spent = spent.after(reply)
    answered = [reply for reply in replies if reply is not None]
    assert spent.calls == len(replies)
    assert spent.failures == len(replies) - len(answered)
    assert spent.tokens == sum(
        (r.tokens.prompt or 0) + (r.tokens.completion or 0) for r in answered
    )
    assert spent.cost == sum(r.cost for r in answered if r.cost is not None)
    assert spent.unpriced == sum(r.cost is None for r in answered)


async def test_a_log_tells_what_was_spent() -> None:
    called = ModelCalled(model="m", purpose="act", request="digest")
    events = [
        replace(called, error="ModelTimeout: x"),
        replace(called, reply={"text": "a"}, tokens=Tokens(prompt=3, completion=4), cost=0.5),
        replace(called, reply={"text": "b"}, tokens=Tokens(prompt=3)),
        replace(called, reply={"text": "a", "from_cache": True}, cost=0.0),
    ]
    async with open_log("memory://") as log:
        for stream in ("trace", "judge@1"):
            await log.append("s", [Draft(e, "a", "agent", 0.0) for e in events], stream=stream)
        assert await spending(log) == Spending(
            calls=8, failures=2, cached=2, prompt=12, completion=8, cost=1.0, unpriced=2
        )


async def test_what_other_processes_spend_counts_too_and_what_this_one_did_counts_once() -> None:
    event = ModelCalled(
        model="m", purpose="act", request="digest", reply={"text": "a"}, tokens=REPLY.tokens
    )
    called = replace(event, cost=0.25)
    budget = Budget(cost=1.0)
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        await log.append("before", [Draft(called, "bot", "agent", 0.0)])
        tasks.start_soon(partial(follow_spending, log, budget, after_position=1))
        budget.spend(Asker("mine", "bot"), REPLY)
        budget.spend(Asker("mine", "judge@1"), REPLY)
        await log.append("mine", [Draft(called, "bot", "agent", 0.0)])
        await log.append("mine", [Draft(called, "judge", "scorer", 0.0)], stream="judge@1")
        await log.append("theirs", [Draft(called, "bot", "agent", 0.0)])
        await anyio.wait_all_tasks_blocked()
        assert budget.spent.cost == 0.75
        assert not budget._unseen  # nothing is kept of what both sides have seen
        await log.append("mine", [Draft(called, "bot", "agent", 0.0)])  # by who took it over
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    with pytest.raises(BudgetExhausted):
        budget.check()


async def test_scorers_of_a_log_count_the_calls_of_their_own_kind() -> None:
    called = ModelCalled(model="m", purpose="judge", request="digest", reply={}, cost=0.25)
    budget = Budget(cost=1.0)
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        by = ("judge",)
        tasks.start_soon(partial(follow_spending, log, budget, after_position=0, by=by))
        await log.append("s", [Draft(called, "bot", "agent", 0.0)])
        await log.append("s", [Draft(called, "judge", "scorer", 0.0)], stream="judge@1")
        await anyio.wait_all_tasks_blocked()
        assert budget.spent.cost == 0.25
        assert await spending(log, by=by, upto=1) == Spending()
        tasks.cancel_scope.cancel()
