"""Financial advice as a task: a household's money, a client whose mind changes, and a shared plan."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from ...agents.habits import Habits
from ...agents.rules_file import shipped_rules
from ..kit.briefs import load_brief
from ..kit.scorer import TaskScorer
from ..kit.task import Case, KitTask, TaskSpec, Witness, index_of
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
    wanted = msgspec.structs.asdict(instance.needs)
    profile = Profile(
        spending=world.budget.spending,
        salary=instance.household.salaries[0],
        holds=instance.holds,
        moved={topic: wanted[topic] for topic in instance.moves},
        heard=instance.heard,
        project=random.choice(_PROJECTS),
    )
    return Case(
        request=say_request(instance.household, random),
        private=write_profile(profile),
        truth={"needs": {topic: value for topic, value in wanted.items() if value}},
        world=world,
    )


def _world(name: str, seed: int) -> World:
    return World(seed, make_instance(seed, index_of(name)))


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
