"""Financial advice as a task: a household's money, a client whose mind changes, and a shared plan."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from ...agents.habits import Habits
from ...agents.rules_file import shipped_rules
from ...engine.errors import InvalidInput
from ..kit.briefs import load_brief
from ..kit.scorer import TaskScorer
from ..kit.task import Case, KitTask, TaskSpec, Witness
from .actions import ACTIONS, World
from .judging import judge
from .language.profiles import Profile, write_profile
from .language.requests import say_request
from .plan import render_plan
from .rule_agent import finance_agent
from .rule_user import finance_alone, finance_changing, finance_user
from .utility import FINANCE, finance_utility
from .world import market
from .world.generator import make_instance
from .world.household import Budget

__all__ = ("finance_scorer", "finance_task")

_PROJECTS: Final = (
    "a new roof",
    "the second bathroom",
    "parental leave",
    "another car",
    "the heating",
)


def finance_task() -> KitTask[World]:
    """The task, for the entry point ``duolog.tasks``."""
    return KitTask(_SPEC)


def finance_scorer() -> TaskScorer:
    """The scorer of recorded sessions, for the entry point ``duolog.scorers``."""
    return TaskScorer(finance_task())


def _case(name: str, seed: int) -> Case[World]:
    world = _world(name, seed)
    instance = world.instance
    random = Random(f"{seed}/finance/{name}/words")
    budget = Budget(instance.household, instance.place)
    held = {topic: getattr(instance.needs, topic) for topic in instance.moves}
    profile = Profile(
        spending=budget.spending,
        salary=instance.household.salaries[0],
        holds=instance.holds,
        moved=held,
        heard=instance.heard,
        project=random.choice(_PROJECTS),
    )
    return Case(
        request=say_request(instance.household, random),
        private=write_profile(profile),
        truth={"needs": {topic: value for topic, value in _wanted(world).items() if value}},
        world=world,
    )


def _wanted(world: World) -> dict[str, int]:
    needs = world.instance.needs
    return {topic: getattr(needs, topic) for topic in needs.__struct_fields__}


def _world(name: str, seed: int) -> World:
    if not name.isdecimal():
        raise InvalidInput(f"there is no instance {name!r}: they are numbered from 0")
    return World(seed, make_instance(seed, int(name)))


def _witness(name: str, seed: int) -> Witness:
    """The best plan for a client who holds what they hold at first.

    It is the one that the instance was made from, with another share of stocks perhaps: that is where
    what a client holds and what they need pull in two directions. Once their mind has changed in all
    that it can, the plan that the instance was made from is worth 1.
    """
    world = _world(name, seed)
    instance, budget = world.instance, world.budget
    plans = [
        msgspec.structs.replace(instance.witness, stocks=stocks)
        for stocks in range(0, 101, market.STEP)
    ]
    values = [judge(plan, budget, instance.holds, instance.needs).value for plan in plans]
    best = max(values)
    return Witness(best, render_plan(plans[values.index(best)]))


_SPEC: Final = TaskSpec(
    name=FINANCE,
    description="a household's money: a client who does not know yet what they need, and a plan",
    brief=load_brief(__package__),
    case=_case,
    environment=ACTIONS.environment,
    utility=finance_utility,
    agent=finance_agent,
    control=shipped_rules(__package__),
    habits=Habits(goals=False),
    user=finance_user,
    changing=finance_changing,
    alone=finance_alone,
    witness=_witness,
)
