"""Estimates calls, tokens and cost of an experiment from a sample.

In the sample the task's own rules take the place of the models, so that no model is called. Calls
and prompts are as they would be if models decided as the rules do; completions are estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..engine.errors import InvalidInput, LogNotFound
from ..engine.events import ModelCalled
from ..engine.log.open import open_log
from ..engine.models.calls.call_records import recorded_reply
from ..engine.models.gateway import Models
from ..engine.models.litellm.load import token_prices
from ..engine.models.rehearsal import Rehearsal
from ..engine.models.traffic.budget import Spending
from ..engine.session.simulation import SessionFailure, simulate
from ..engine.task import Cell

if TYPE_CHECKING:
    from ..engine.records import Record
    from ..engine.session.runner import Session
    from ..engine.session.simulation import Outcome
    from ..engine.task import Setting
    from .plan import Plan
    from .spec import Experiment

__all__ = ("Share", "UsageEstimate", "estimate", "plus")

_SAMPLE = 3
"""Sample size for each kind of cell."""


class Share(NamedTuple):
    """Which role calls which model: an agent, a user or a judge."""

    role: str
    model: str


class UsageEstimate(NamedTuple):
    """The estimated usage of the sessions that are left to run.

    Attributes:
        total: usage of all of them, by who calls which model.
        sessions: number of sessions that are left.
        sampled: number of them in the sample.
        unpriced: models without a known price.
    """

    total: dict[Share, Spending]
    sessions: int
    sampled: int
    unpriced: frozenset[str]


async def estimate(plan: Plan) -> UsageEstimate:
    """Estimates the usage of models by the cells that the log does not hold yet.

    Raises:
        InvalidInput: no model is named, or a session cannot be rehearsed.
    """
    if not plan.experiment.named_models:
        raise InvalidInput("there is nothing to estimate: no model is named (see --models)")
    prices = _Prices(plan.experiment)
    rehearsal = Rehearsal(price=prices)
    setting = plan.setting(Models(rehearsal))
    left = await _left(plan, setting)
    rehearsed = msgspec.structs.replace(setting, rehearsal=rehearsal)
    total: dict[Share, Spending] = {}
    sampled = 0
    for alike in _kinds(left):
        sample = alike[:_SAMPLE]
        sampled += len(sample)
        for share, spent in (await _rehearse(plan, sample, rehearsed)).items():
            more = _times(spent, len(alike) / len(sample))
            total[share] = plus(total.get(share, Spending()), more)
    return UsageEstimate(total, len(left), sampled, frozenset(prices.unknown))


class _Prices:
    """Prices of calls: those in the experiment's tables, else those that LiteLLM knows.

    Attributes:
        unknown: models without a known price.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._known: dict[str, tuple[float, float] | None] = {}
        self.unknown: set[str] = set()

    def __call__(self, model: str, prompt: int, completion: int) -> float | None:
        if model not in self._known:
            self._known[model] = self._find(model)
        price = self._known[model]
        if price is None:
            self.unknown.add(model)
            return None
        return price[0] * prompt + price[1] * completion

    def _find(self, model: str) -> tuple[float, float] | None:
        own = self._experiment.price(model)
        if own[0] is not None and own[1] is not None:
            return own[0], own[1]
        return token_prices(model)


def _kinds(cells: Sequence[Cell]) -> list[list[Cell]]:
    """The cells, grouped by everything but the problem."""
    found: dict[Cell, list[Cell]] = {}
    for cell in cells:
        found.setdefault(msgspec.structs.replace(cell, instance="", seed=0, repeat=1), []).append(
            cell
        )
    return list(found.values())


async def _left(plan: Plan, setting: Setting) -> list[Cell]:
    """The cells whose sessions the log does not hold to their end."""
    done: set[str] = set()
    try:
        async with open_log(plan.experiment.log, create=False) as log:
            done = {summary.session async for summary in log.sessions() if summary.state != "open"}
    except LogNotFound:
        pass  # no session was run yet
    return [cell for cell in plan.cells if plan.session(cell, setting).id not in done]


async def _rehearse(plan: Plan, cells: Sequence[Cell], setting: Setting) -> dict[Share, Spending]:
    """The usage in the sessions of these cells, by who calls which model."""
    failures: list[SessionFailure] = []

    def note(outcome: Outcome) -> None:
        if isinstance(outcome, SessionFailure):
            failures.append(outcome)

    makers: list[Callable[[], Session]] = [partial(plan.session, cell, setting) for cell in cells]
    spent: dict[Share, Spending] = {}
    async with open_log("memory://") as log:
        await simulate(log, makers, on_outcome=note)
        if failures:
            raise InvalidInput(
                f"session {failures[0].session} cannot be rehearsed: {failures[0].error}"
            )
        async for record in log.read_all():
            share, spending = _usage(record)
            if share is not None:
                spent[share] = plus(spent.get(share, Spending()), spending)
    return spent


def _usage(record: Record) -> tuple[Share | None, Spending]:
    event = record.event if record.kind == "ModelCalled" else None
    if not isinstance(event, ModelCalled):
        return None, Spending()
    reply = recorded_reply(event.reply, event.tokens, event.cost, event.latency)
    roles = {"human": "user", "scorer": "judge"}
    return Share(roles.get(record.role, record.role), event.model), Spending().after(reply)


def _times(spent: Spending, factor: float) -> Spending:
    return Spending(
        calls=round(spent.calls * factor),
        prompt=round(spent.prompt * factor),
        completion=round(spent.completion * factor),
        cost=spent.cost * factor,
        unpriced=round(spent.unpriced * factor),
    )


def plus(one: Spending, other: Spending) -> Spending:
    """The usage of both."""
    return Spending(
        calls=one.calls + other.calls,
        prompt=one.prompt + other.prompt,
        completion=one.completion + other.completion,
        cost=one.cost + other.cost,
        unpriced=one.unpriced + other.unpriced,
    )
