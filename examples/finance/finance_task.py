"""Financial advice as a task: a household's money, a client whose mind changes, and a shared plan."""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from ...agents.habits import Habits
from ...agents.rules_file import shipped_rules
from ...engine.errors import InvalidInput
from ...engine.events import SessionOpened, SnapshotTaken
from ...engine.scorers.protocol import Scorer
from ...scoring.display.cards import Part
from ...scoring.scorers.utility import Score, SnapshotUtility, unreadable
from ...tasks.actions import typed_output
from ...tasks.kit import BestOutput, Case, KitTask, TaskScorer, TaskSpec, index_of, load_brief
from .actions import ACTIONS, World
from .judging import judge
from .language.profiles import Profile, read_profile, write_profile
from .plan import Plan, parse_plan, render_plan, try_plan
from .rule_agent import finance_agent
from .rule_user import finance_alone, finance_changing, finance_user
from .world import market
from .world.generator import make_instance
from .world.household import Household, Wishes

__all__ = ("finance_scorer", "finance_task")

FINANCE = "finance"
"""Name of the task and of its scorer."""

_VERSION = "2"


def finance_utility(world: World) -> Scorer:
    """The scorer of plans for one household.

    A plan that cannot be read has 0.

    Args:
        world: the household, and what its client wants at first and will want.
    """
    budget, needs = world.budget, world.instance.needs

    def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score:
        if not isinstance(snapshot.content, str):
            return unreadable()
        try:
            plan = parse_plan(snapshot.content)
        except InvalidInput:
            return unreadable()
        judged = judge(plan, budget, _held(opened, world), needs)
        return Score(judged.value, judged.parts)

    return SnapshotUtility(FINANCE, _VERSION, score)


def _held(opened: SessionOpened, world: World) -> Wishes:
    """The client's current wishes; if no client takes part, the wishes they would start with."""
    humans = [one.name for one in opened.participants if one.role == "human"]
    private = next((opened.private[name] for name in humans if name in opened.private), None)
    return world.instance.holds if private is None else read_profile(private).holds


# --- the first request of a client ----------------------------------------------------------------


_NARROW: Final = (
    (
        "We have just bought our first home in {place}, and there is a child of {child} now. How should we "
        "invest our savings of {savings}?"
    ),
    (
        "We moved into a house of our own in {place} last month. We have {savings} in the bank, and I would "
        "like to know what to buy with it."
    ),
    "I want to stop working early. What should we do with our {savings}, here in {place}?",
)
_VAGUE: Final = (
    (
        "We have a house in {place} and a small child now, and I think that we should get our money in order. "
        "Can you make us a plan?"
    ),
    "With the mortgage and the little one in {place}, I have lost track. What should we do with our money?",
    "Can you help us with our finances? We live in {place}, the three of us.",
)


def say_request(household: Household, random: Random) -> str:
    """A request in plain words, without any wish that a plan could be measured by."""
    texts = _NARROW if random.random() < 0.5 else _VAGUE
    child = "a few months" if not household.child else f"{household.child}"
    return random.choice(texts).format(
        place=household.place, child=child, savings=f"{household.savings:,}"
    )


# --- financial advice as a task -------------------------------------------------------------------


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


def _best_output(name: str, seed: int) -> BestOutput:
    """The best plan for a client who holds what they hold at first.

    It is the one that the instance was made from, with another share of stocks perhaps: that is where
    what a client holds and what they need pull in two directions. Once their mind has changed in all
    that it can, the plan that the instance was made from is worth 1.
    """
    world = _world(name, seed)
    instance, budget = world.instance, world.budget
    plans = [
        msgspec.structs.replace(instance.solution, stocks=stocks)
        for stocks in range(0, 101, market.STEP)
    ]
    values = [judge(plan, budget, instance.holds, instance.needs).value for plan in plans]
    best = max(values)
    return BestOutput(best, render_plan(plans[values.index(best)]))


def _written(plan: Plan) -> str:
    """The text of a plan.

    Raises:
        InvalidInput: a number in it is more than a plan can hold, or below 0.
    """
    text = render_plan(plan)
    parse_plan(text)
    return text


_SPEC: Final = TaskSpec(
    name=FINANCE,
    description="a household's money: a client who does not know yet what they need, and a plan",
    brief=load_brief(
        __package__,
        form=typed_output(Plan, _written, lambda text: try_plan(text) or Plan()),
    ),
    part=Part(
        role="You are a client who has money to plan. An adviser makes the plan.",
        goal="A plan that you can bear and that reaches your goals, without reading more than you must.",
    ),
    case=_case,
    environment=ACTIONS.environment,
    utility=finance_utility,
    agent=finance_agent,
    control=shipped_rules(__package__),
    habits=Habits(goals=False),
    user=finance_user,
    changing=finance_changing,
    alone=finance_alone,
    best_output=_best_output,
)
