"""The rule-driven adviser: looks up, drafts, asks, and says what a plan leads to.

It learns the client's wishes from messages and from what they change in the plan. It says how it
understood them, so that they can correct it. Each report shows two figures, those first that the client
has not seen yet.
"""

from __future__ import annotations

from random import Random
from typing import Final, final

from ...agents.habits import Habits
from ...agents.mind import AgentMind
from ...engine.session.decisions import Decision, Submit
from ...engine.session.view import View
from ..kit.rule_agent import Question, RuleAgent, Standing
from ..kit.views import Outcomes
from .drafting import Draft, draft, look_ups
from .knowledge import Finds, Known, hear
from .language.advice import FOLLOW_UPS, QUESTIONS, say_figure, say_understood
from .language.statements import Fact
from .plan import render_plan
from .world.household import Topic

__all__ = ("Adviser", "finance_agent")

_ORDER: Final[tuple[Topic, ...]] = (
    "loss",
    "age",
    "cushion",
    "study",
    "project",
    "income",
    "cover",
    "support",
    "prepay",
)
_FIRST: Final = frozenset({"loss", "age", "cushion", "study", "project"})
"""What is worth asking before there is a plan: what shapes all of it."""

_FIGURES: Final[tuple[Topic, ...]] = ("loss", "age", "cushion", "study", "cover")
_AT_ONCE: Final = 2
"""Figures in a report: more of them are not taken in."""

_STANDING: Final = {
    "first": ("Here is a first plan.", "I have drafted a plan for you."),
    "changed": ("I have changed the plan.", "The plan is updated."),
    "unchanged": ("The plan stays as it is.", "I have changed nothing in the plan."),
}
_MISSED: Final = ("I am not sure that I follow you.", "I did not quite get that.")


def finance_agent(habits: Habits) -> AgentMind:
    """The rules of the task for agents."""
    return RuleAgent(Adviser(habits))


@final
class Adviser:
    """What an adviser does, by rules; a ``Planner``.

    Args:
        habits: ``assumptions``: it says what it has planned for; ``doubts``: and what the plan may lead to,
            in figures; ``goals``: it asks again for a wish of which the client has seen the figure;
            ``level``: it asks again, with a choice of answers, where one was vague or not followed.
    """

    def __init__(self, habits: Habits) -> None:
        self._habits = habits
        self._finds = Finds()
        self._outcomes = Outcomes()

    def know(self, view: View) -> Known:
        """The file, the tables, and all that was said."""
        for action in self._outcomes.fresh(view):
            self._finds.add(action)
        return hear(view, self._finds)

    def work(self, known: Known, view: View) -> Decision | None:
        """Look-ups, then a plan, where it is another one than the plan that stands."""
        missing = look_ups(known)
        if missing:
            return Decision(missing)
        drafted = draft(known)
        if drafted is None:
            return None
        text = render_plan(drafted.plan)
        return None if text == view.snapshot_text else Decision((Submit(text),))

    def question(self, known: Known, words: Random) -> Question | None:
        """A topic that is open; else one on which the answer was vague or not followed, once more."""
        for topic in _ORDER:
            times = known.asked.get(topic, 0)
            fact = known.wishes.get(topic)
            if self._habits.level and topic in known.unread and times < 2:
                return Question(FOLLOW_UPS.say(topic, words), first=topic in _FIRST)
            if self._habits.level and fact is not None and not fact.sure and times < 2:
                return Question(FOLLOW_UPS.say(topic, words), first=topic in _FIRST)
            if fact is None and not times:
                return Question(QUESTIONS.say(topic, words), first=topic in _FIRST)
        again = (one for one in _FIGURES if one in known.shown and known.asked.get(one, 0) < 2)
        topic_again = next(again, None) if self._habits.goals else None
        return None if topic_again is None else Question(QUESTIONS.say(topic_again, words))

    def estimate(self, known: Known) -> float:
        """By the wishes that are certain, and the figures that the client has seen."""
        sure = sum(fact.sure for fact in known.wishes.values())
        seen = sum(topic in known.shown for topic in _FIGURES)
        return min(1.0, (sure + seen) / (len(_ORDER) + len(_FIGURES)))

    def report(self, known: Known, words: Random, standing: Standing) -> str:
        """How the plan stands, what was understood, and what the plan leads to."""
        missed = known.silent and standing == "unchanged"
        said = [words.choice(_MISSED if missed else _STANDING[standing])]
        news = tuple(known.wishes) if standing == "first" else known.fresh
        facts = [known.wishes[topic] for topic in news if topic in known.wishes]
        if facts and self._habits.assumptions:
            said.append(say_understood([Fact(f.topic, f.value) for f in facts], words))
        drafted = draft(known)
        if drafted is not None and self._habits.doubts:
            said.extend(_figures(known, drafted, words))
        return " ".join(said)


def _figures(known: Known, drafted: Draft, words: Random) -> list[str]:
    """The figures to show: of what is new or was never shown."""
    values, row, costs = known.values, drafted.row, known.finds.costs
    new = [topic for topic in _FIGURES if topic not in known.shown]
    again = [topic for topic in _FIGURES if topic in known.fresh and topic not in new]
    said = []
    for topic in (*again, *new)[:_AT_ONCE]:
        if topic == "loss":
            money = f"{row['bad_year_in_ten_years']:,.0f}"
            said.append(say_figure("loss", words, value=f"{row['bad_year']:.0f}", money=money))
        elif topic == "age":
            chance, income = f"{row['retirement_chance']:.0f}", f"{values['income']:,}"
            said.append(say_figure("age", words, value=chance, age=values["age"], income=income))
        elif topic == "cushion":
            said.append(say_figure("cushion", words, value=f"{row['months_in_reserve']:.1f}"))
        elif topic == "study" and costs is not None:
            key = "study" if values["study"] else "study0"
            chance, cost = f"{row['study_chance']:.0f}", f"{costs.studies:,}"
            said.append(say_figure(key, words, value=chance, cost=cost))
        elif topic == "cover":
            said.append(say_figure("cover", words, value=f"{row['years_of_salary']:.1f}"))
    return said
