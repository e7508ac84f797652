"""The rule-driven adviser: looks up, drafts, asks, and says what a plan leads to.

It learns the client's wishes from messages and from what they change in the plan. It says how it
understood them, so that they can correct it. Each report shows two figures, those first that the client
has not seen yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple, final

import msgspec

from ...agents.habits import Habits
from ...agents.mind import AgentMind
from ...engine.events import JSON
from ...engine.session.decisions import Act, Decision, Submit
from ...engine.session.view import View
from ...tasks.rule_agent import Question, RuleAgent, Standing
from ...tasks.views import Outcomes
from .knowledge import Costs, File, Finds, Known, Rules, hear, projection_key, spending_of
from .language.advice import FOLLOW_UPS, QUESTIONS, say_figure, say_understood
from .language.statements import Fact
from .plan import Plan, render_plan
from .world.household import Topic, annuity

__all__ = ("finance_agent",)

_STUDY_AGE: Final = 18
_CONFIDENCE: Final = 78
_CARD_YEARS: Final = 2
_STEPS: Final = (0, 10, 20)
"""The drafts that are compared: per cent of stocks below the most that the client could bear."""


class Draft(NamedTuple):
    """A plan and its projected outcome.

    Attributes:
        plan: the proposed plan.
        row: its projection, see ``actions.projection``.
    """

    plan: Plan
    row: Mapping[str, float]


class _Basis(NamedTuple):
    file: File
    net: int
    costs: Costs
    rules: Rules


def look_ups(known: Known) -> tuple[Act, ...]:
    """The actions that are needed before a draft; none if it can be made, or if one was refused."""
    finds = known.finds
    if finds.failed:
        return ()
    if finds.file is None:
        return (Act("ReadFile"), Act("LookUpMarket"))
    basis = _basis(finds)
    if basis is None:
        return _tables(finds.file)
    missing = [ask for stocks in _shares(known) for ask in _study(known, basis, stocks)]
    if missing:
        return tuple(missing)
    plans = tuple(_plan(known, basis, stocks) for stocks in _shares(known))
    values = known.values
    if all(_key(plan, values) in finds.rows for plan in plans):
        return ()
    goals = {"age": values["age"], "income": values["income"], "study": values["study"]}
    shown = [msgspec.to_builtins(plan) for plan in plans]
    return (Act("ComparePlans", {"plans": shown, **goals}),)


def draft(known: Known) -> Draft | None:
    """The best of the compared plans; None while look-ups are missing.

    Best is the one with the better chances; of two that are alike, the one with fewer stocks.
    """
    basis = _basis(known.finds)
    if basis is None:
        return None
    values = known.values
    best: tuple[float, int, Draft] | None = None
    for stocks in _shares(known):
        if any(True for _ in _study(known, basis, stocks)):
            return None
        plan = _plan(known, basis, stocks)
        row = known.finds.rows.get(_key(plan, values))
        if row is None:
            return None
        chance = min(_ENOUGH, row["retirement_chance"])
        if values["study"]:
            chance += min(_ENOUGH, row["study_chance"])
        if best is None or (chance, -stocks) > best[:2]:
            best = (chance, -stocks, Draft(plan, row))
    return best[2] if best is not None else None


_ENOUGH: Final = 76
"""A chance above this many per cent is worth no more stocks."""


def _basis(finds: Finds) -> _Basis | None:
    if finds.file is None or finds.net is None or finds.costs is None or finds.rules is None:
        return None
    return _Basis(finds.file, finds.net, finds.costs, finds.rules)


def _tables(file: File) -> tuple[Act, ...]:
    salaries = [salary for salary in file.salaries if salary] or [0]
    costs: dict[str, JSON] = {
        "place": file.place,
        "adults": 2,
        "child": file.child,
        "both_work": len(salaries) > 1,
        "home": file.home,
    }
    return (
        Act("LookUpTaxes", {"place": file.place, "salaries": salaries}),
        Act("LookUpCosts", costs),
        Act("LookUpRules", {"place": file.place, "age": file.age, "gross": sum(file.salaries)}),
    )


def _shares(known: Known) -> tuple[int, ...]:
    """The shares of stocks to compare: the most that the client could bear, and fewer."""
    table = known.finds.bad_year
    bearable = known.values["loss"] + 0.05
    most = max((stocks for stocks, lost in table.items() if lost <= bearable), default=0)
    return tuple(dict.fromkeys(max(0, most - step) for step in _STEPS))


def _study_goal(known: Known, basis: _Basis) -> tuple[int, int]:
    """The studies' cost to the client, and the years until then."""
    target = round(basis.costs.studies * known.values["study"] / 100)
    return target, max(1, _STUDY_AGE - basis.file.child)


def _study(known: Known, basis: _Basis, stocks: int) -> list[Act]:
    """The look-up of the savings needed for studies, if it is missing."""
    target, years = _study_goal(known, basis)
    if not target or (target, years, stocks) in known.finds.needed:
        return []
    asked = {"target": target, "years": years, "stocks": stocks, "confidence": _CONFIDENCE}
    return [Act("SavingNeeded", asked)]


def _plan(known: Known, basis: _Basis, stocks: int) -> Plan:
    values, file = known.values, basis.file
    spending = spending_of(file, basis.costs)
    reserve = values["cushion"] * spending
    left = file.savings
    emergency = min(left, spending)
    left -= emergency
    cards = min(left, file.cards)
    left -= cards
    project = min(left, values["project"])
    left -= project
    more = min(left, max(0, -(-reserve // 100) * 100 - emergency))
    emergency, left = emergency + more, left - more

    cover = max(file.life_cover_asked_by_bank, values["cover"] * file.salaries[0])
    cover = min(cover, basis.rules.life_cover_limit)
    month = basis.net - spending - values["support"] - _premium(basis, cover)
    owed = file.cards - cards
    cards_monthly = annuity(owed, file.cards_rate, _CARD_YEARS) if owed else 0
    month = max(0, month - cards_monthly)
    prepay = min(values["prepay"], file.prepayment_limit_monthly, month)
    month -= prepay
    target, years = _study_goal(known, basis)
    needed = known.finds.needed.get((target, years, stocks), 0)
    study = min(-(-needed // 10) * 10, month)
    month -= study
    return Plan(
        emergency=emergency,
        cards=cards,
        project=project,
        invested=left,
        cards_monthly=cards_monthly,
        study=study,
        retirement=min(month, basis.rules.retirement_limit_monthly) // 10 * 10,
        prepay=prepay,
        cover=cover,
        stocks=stocks,
    )


def _premium(basis: _Basis, cover: int) -> int:
    return round(cover / 100_000 * basis.rules.life_cover_per_100000_monthly + 0.5)


def _key(plan: Plan, values: Mapping[Topic, int]) -> str:
    return projection_key(plan, values["age"], values["income"], values["study"])


# --- the rule-driven adviser ----------------------------------------------------------------------


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
"""Topics worth asking about before the first plan, because they shape all of it."""

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
    """Decides by rules what an adviser does; a ``Planner``.

    Args:
        habits: ``assumptions``: it says what it has planned for; ``doubts``: and what the plan may lead to,
            in figures; ``goals``: it asks again for a wish of which the client has seen the figure;
            ``level``: it asks again, with a choice of answers, if one was vague or not understood.
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
        """Look-ups, then a plan if it differs from the current one."""
        missing = look_ups(known)
        if missing:
            return Decision(missing)
        drafted = draft(known)
        if drafted is None:
            return None
        text = render_plan(drafted.plan)
        return None if text == view.snapshot_text else Decision((Submit(text),))

    def question(self, known: Known, words: Random) -> Question | None:
        """The topics that are open, and those on which the answer was vague or not followed, once more."""
        open_: list[tuple[Topic, str]] = []
        for topic in _ORDER:
            times = known.asked.get(topic, 0)
            fact = known.wishes.get(topic)
            unsure = topic in known.unread or (fact is not None and not fact.sure)
            if self._habits.level and unsure and times < 2:
                open_.append((topic, FOLLOW_UPS.say(topic, words)))
            elif fact is None and not times:
                open_.append((topic, QUESTIONS.say(topic, words)))
        if open_:
            first = open_[0][0] in _FIRST
            further = tuple(text for topic, text in open_[1:] if (topic in _FIRST) is first)
            return Question(open_[0][1], first=first, further=further)
        again = (one for one in _FIGURES if one in known.shown and known.asked.get(one, 0) < 2)
        topic_again = next(again, None) if self._habits.goals else None
        return None if topic_again is None else Question(QUESTIONS.say(topic_again, words))

    def estimate(self, known: Known) -> float:
        """By the wishes that are certain, and the figures that the client has seen."""
        sure = sum(fact.sure for fact in known.wishes.values())
        seen = sum(topic in known.shown for topic in _FIGURES)
        return min(1.0, (sure + seen) / (len(_ORDER) + len(_FIGURES)))

    def report(self, known: Known, words: Random, standing: Standing) -> str:
        """The state of the plan, the wishes that were understood, and the projected outcome."""
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
    """The figures to show: new ones, and those never shown."""
    values, row, costs = known.values, drafted.row, known.finds.costs
    new = [topic for topic in _FIGURES if topic not in known.shown]
    stale = {*known.fresh, *(("age",) if "income" in known.fresh else ())}
    again = [topic for topic in _FIGURES if topic in stale and topic not in new]
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
