"""The utility of a plan for a household's money, by what its client holds at the time and what they need.

    U = feasible * (holds + needs) / 2

See ``judging`` for the parts. A change of the client's mind has the plan that stands judged again, for the
round in which it fell.
"""

from __future__ import annotations

from ...engine.errors import InvalidInput
from ...engine.events import SessionOpened, SnapshotTaken
from ...engine.scorers.protocol import Scorer
from ...scoring.scorers.utility import Missing, Score, SnapshotUtility
from .actions import World
from .judging import judge
from .language.profiles import read_profile
from .plan import parse_plan
from .world.household import Wishes

__all__ = ("FINANCE", "finance_utility")

FINANCE = "finance"
"""Name of the task and of its scorer."""

_VERSION = "1"


def finance_utility(world: World) -> Scorer:
    """The scorer of plans for one household.

    A plan that cannot be read is missing a score, with the reason.

    Args:
        world: the household, and what its client wants at first and will want.
    """
    budget, needs = world.budget, world.instance.needs

    def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score | Missing:
        if not isinstance(snapshot.content, str):
            return Missing("the plan is no text")
        try:
            plan = parse_plan(snapshot.content)
        except InvalidInput as error:
            return Missing(f"the plan cannot be read: {error}")
        judged = judge(plan, budget, _held(opened, world), needs)
        return Score(judged.value, judged.parts)

    return SnapshotUtility(FINANCE, _VERSION, score)


def _held(opened: SessionOpened, world: World) -> Wishes:
    """What the client holds as it stands; where no client takes part, what they would at first."""
    humans = [one.name for one in opened.participants if one.role == "human"]
    private = next((opened.private[name] for name in humans if name in opened.private), None)
    return world.instance.holds if private is None else read_profile(private).holds
