"""A client at one moment: their wishes, the problems they see in a plan, and their second thoughts."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

import msgspec

from ...engine.events import JSON
from ...engine.session.view import View
from ...tasks.views import asked_last, own_messages
from .language.advice import read_questions
from .language.profiles import CAUSES, HEARD, Profile, read_profile
from .perception import GOALS, VISIBLE, Perception
from .plan import Plan, try_plan
from .world.household import TOPICS, Topic, Wishes

__all__ = ("Client", "hopeless", "problems", "see", "stirred", "untold")

_SMALL: Final = 60
"""A chance of fewer per cent than this makes a client think again."""

_FOLK_RULE: Final = 4.0
"""Without a figure, people take a loss of a quarter of the share of stocks."""

_MARGIN: Final = 1.3
"""Multiple of their bearable loss above which a loss that was estimated by that rule is too high."""

_AMOUNTS: Final[tuple[Topic, ...]] = ("cushion", "cover")
"""The topics on which advisers state what a plan has, in the unit of the wish."""

_ALMOST: Final = 0.95
"""Share of a wished sum that is close enough to it."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """A client at a moment.

    Attributes:
        profile: their wishes, and what would change them.
        output: the current plan as text; empty if there is none.
        plan: the same, as far as it can be read.
        sent: their own messages, the request first.
        question: the question that waits for an answer.
        asked: its topics.
        told: the last thing that they said plainly on each topic.
        hinted: topics on which they have said something, plainly or not.
        swayed: topics on which they have only hinted at what they held before.
        ignored: topics on which they have told what they hold before the agent last said something.
        understood: their wishes as the agent last stated them, by topic.
        current: the figures of the plan that stands, as far as they were taken in.
        seen: the lowest and the highest figure that they ever took to heart, by topic.
        edits: they are one who would change a plan themselves.
        explains: the topic on which they have changed the plan, until they have said so.
        accepted: topics on which they go along with what the first plan proposed.
        protested: goals of which they have said that the chance is too small.
        chances: the chances of their goals in per cent, as they last took them in.
        chances_before: the same when they last said something.
        tired: they have read enough.
        heard: whether others have talked to them yet.
        done: names of their own task actions that are resolved, with what was found.
        drafts: number of plans that they have submitted themselves.
    """

    profile: Profile
    output: str
    plan: Plan | None
    sent: tuple[str, ...]
    question: str
    asked: tuple[Topic, ...]
    told: Mapping[Topic, int]
    hinted: frozenset[Topic]
    swayed: frozenset[Topic]
    ignored: frozenset[Topic]
    understood: Mapping[Topic, int]
    current: Mapping[Topic, float]
    seen: Mapping[Topic, tuple[float, float]]
    edits: bool
    explains: Topic | None
    accepted: frozenset[Topic]
    protested: frozenset[Topic]
    chances: Mapping[Topic, float]
    chances_before: Mapping[Topic, float]
    tired: bool
    heard: bool
    done: Mapping[str, JSON]
    drafts: int

    @property
    def held(self) -> Mapping[Topic, int]:
        """The wishes that they hold, by topic."""
        return self.profile.held

    @property
    def changed(self) -> list[Topic]:
        """Topics on which they hold something else than they have told, or hinted at."""
        told = [topic for topic, value in self.told.items() if value != self.held[topic]]
        return [*told, *(topic for topic in TOPICS if topic in self.swayed)]


def see(view: View, taken: Perception, profile: Profile) -> Client:
    """The client by a view.

    Args:
        view: the client's view.
        taken: their perception of it.
        profile: the current profile.
    """
    private = view.opened.private.get(view.me) if view.opened is not None else None
    moved_on = read_profile(private).moved.keys() - profile.moved.keys()
    sent = own_messages(view)
    question = asked_last(view)
    held = profile.held
    actions = [action for action in view.actions.values() if action.resolved is not None]
    return Client(
        profile=profile,
        output=view.snapshot_text,
        plan=try_plan(view.snapshot_text),
        sent=tuple(sent),
        question=question,
        asked=read_questions(question),
        told=dict(taken.told),
        hinted=frozenset(taken.hinted),
        swayed=frozenset(moved_on & taken.hinted) - taken.told.keys(),
        ignored=frozenset(t for t, value in taken.heeded.items() if value == held[t]),
        understood=dict(taken.understood),
        current=dict(taken.current),
        seen=dict(taken.seen),
        edits=taken.edits,
        explains=taken.explains,
        accepted=taken.accepted - moved_on - _seen_to_fail(taken.current, profile.holds),
        protested=frozenset(taken.protested),
        chances=dict(taken.chances),
        chances_before=dict(taken.chances_before),
        tired=taken.tired,
        heard=len(sent) >= taken.talk,
        done={a.name: a.resolved.observation for a in actions if a.resolved is not None},
        drafts=sum(r.kind == "SnapshotTaken" and r.actor == view.me for r in view.records),
    )


def problems(client: Client, plan: Plan | None, *, current: bool = True) -> tuple[Topic, ...]:
    """The problems that the client sees in a plan, given their current wishes.

    Args:
        client: the client.
        plan: the plan; None if the output is not a plan.
        current: whether the last figures that they were shown are those of this plan.
    """
    if plan is None:
        return TOPICS
    holds, profile = client.profile.holds, client.profile
    lost = client.current.get("loss") if current else None
    too_much = (
        plan.stocks / _FOLK_RULE > _MARGIN * holds.loss if lost is None else lost > holds.loss
    )
    wrong: dict[Topic, bool] = {
        "loss": too_much,
        "cushion": plan.emergency < _ALMOST * holds.cushion * profile.spending,
        "study": bool(holds.study and not plan.study),
        "project": plan.project < holds.project,
        "cover": plan.cover < _ALMOST * holds.cover * profile.salary,
        "prepay": plan.prepay < _ALMOST * holds.prepay,
    }
    for topic, value in client.understood.items():
        wrong[topic] = wrong.get(topic, False) or value != client.held[topic]
    return tuple(topic for topic, is_ in wrong.items() if is_ and topic not in client.accepted)


def hopeless(client: Client) -> Mapping[Topic, float]:
    """The goals that they are unlikely to reach by the figures that they took in, with the chance in per cent."""
    return {
        topic: client.chances[topic]
        for topic in GOALS
        if client.held[topic] and client.chances.get(topic, 100.0) < _SMALL
    }


def _seen_to_fail(current: Mapping[Topic, float], holds: Wishes) -> frozenset[Topic]:
    """The topics on which a figure that they took in shows that the plan has less than they want."""
    return frozenset(
        topic for topic in _AMOUNTS if current.get(topic, inf) < _ALMOST * getattr(holds, topic)
    )


def untold(client: Client) -> list[Topic]:
    """Wishes that the client holds but has not told, and that the plan does not happen to meet."""
    wrong = problems(client, client.plan)
    return [
        topic
        for topic in TOPICS
        if topic not in client.accepted
        and client.told.get(topic, 0) != client.held[topic]
        and (topic not in VISIBLE or topic in wrong)
    ]


def stirred(client: Client) -> Mapping[Topic, str]:
    """The topics on which the client thinks again now, each with the reason."""
    moved: dict[Topic, str] = {}
    for topic in client.profile.moved:
        if topic == client.profile.heard and client.heard:
            moved[topic] = HEARD[topic]
        elif topic in client.seen and _is_stirred(client, topic):
            moved[topic] = CAUSES[topic]
    return moved


def _is_stirred(client: Client, topic: Topic) -> bool:
    """Whether a figure that the client took to heart is one that they cannot live with."""
    value = client.profile.moved[topic]
    low, high = client.seen[topic]
    match topic:
        case "loss" if value < client.profile.holds.loss:
            return high > value + 0.5
        case "loss":  # too timid: so much safety is not worth the goal
            return client.seen.get("age", (100.0, 100.0))[0] < _SMALL
        case "age":
            return low < _SMALL
        case "study":
            return True
    return low < value  # for the reserve, and for the family's cover
