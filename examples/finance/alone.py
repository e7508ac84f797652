"""The client without an adviser: rules of thumb, much time, and one look at a projection.

They know their own wishes as they hold them, their file and what is left of their salaries. They know
neither the tables of the place nor how to compute what a goal takes. A projection of their plan is what
may change their mind.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final

import msgspec

from ...engine.events import JSON
from ...engine.session.decisions import Act, Decision, Submit
from .client import Client, problems
from .plan import Plan, render_plan

__all__ = ("alone_step",)

_MINUTES: Final = (20.0, 60.0)
"""Minutes that a first plan takes somebody who does not do this often, at least and at most."""

_AGAIN: Final = 0.25
"""Share of that time that it takes to correct it."""

_STUDIES: Final = 50_000
"""What people think that studies cost."""

_STOCKS_PER_LOSS: Final = 4
"""People take the loss of a bad year for a quarter of the share of stocks."""

_SPENT: Final = 0.9
"""Share of what is left each month that people dare to plan with."""

_DRAFTS: Final = 2


def alone_step(client: Client, words: Random) -> Decision | None:
    """The next step of somebody on their own; None where they leave it at the plan that they have."""
    file = client.done.get("ReadFile")
    if not isinstance(file, Mapping):
        return None if "ReadFile" in client.done else Decision((Act("ReadFile"),))
    if "LookUpTaxes" not in client.done:
        salaries = file.get("salaries")
        return Decision((Act("LookUpTaxes", {"place": file.get("place"), "salaries": salaries}),))
    minutes = words.uniform(*_MINUTES)
    if not client.drafts:
        return Decision((Submit(render_plan(_by_thumb(client, file))),), seconds=60 * minutes)
    if "Project" not in client.done and client.plan is not None:
        holds = client.profile.holds
        goals = {"age": holds.age, "income": holds.income, "study": holds.study}
        plan = msgspec.to_builtins(client.plan)
        return Decision((Act("Project", {"plan": plan, **goals}),))
    wrong = problems(client, client.plan)
    if client.drafts < _DRAFTS and wrong and client.plan is not None:
        better = _by_thumb(client, file)
        if "loss" in client.current and "loss" in wrong:
            share = client.profile.holds.loss / max(1.0, client.current["loss"])
            better = msgspec.structs.replace(better, stocks=int(client.plan.stocks * share))
        return Decision((Submit(render_plan(better)),), seconds=60 * minutes * _AGAIN)
    return None


def _by_thumb(client: Client, file: Mapping[str, JSON]) -> Plan:
    """A plan without any table: what is wished, as far as the money goes."""
    holds, profile = client.profile.holds, client.profile
    taxes = client.done.get("LookUpTaxes")
    net = _number(taxes.get("net_monthly")) if isinstance(taxes, Mapping) else 0
    left, owed = _number(file.get("savings")), _number(file.get("cards"))
    cards = min(owed, left)
    project = min(holds.project, left - cards)
    emergency = min(holds.cushion * profile.spending, left - cards - project)
    month = int(_SPENT * max(0, net - profile.spending - holds.support))
    prepay = min(holds.prepay, month)
    years = max(1, 18 - _number(file.get("child")))
    study = min(round(_STUDIES * holds.study / 100 / (12 * years)), month - prepay)
    return Plan(
        emergency=emergency,
        cards=cards,
        project=project,
        invested=left - cards - project - emergency,
        study=study,
        retirement=month - prepay - study,
        prepay=prepay,
        cover=holds.cover * profile.salary,
        stocks=max(0, min(100, _STOCKS_PER_LOSS * holds.loss)),
    )


def _number(value: JSON) -> int:
    return int(value) if isinstance(value, int | float) else 0
