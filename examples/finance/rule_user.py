"""The rule-driven client: answers, complains, corrects the plan, and learns what they want.

They know their wishes, but not their needs. A figure from an adviser or another person's story may
change their wishes. The change is recorded, and from then on they want something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final, final

import msgspec

from ...engine.events import JSON
from ...engine.session.actors import Policy
from ...engine.session.decisions import Act, ChangeProfile, Decision, Submit
from ...engine.session.view import View
from ...tasks.phrases import spelled
from ...tasks.rule_user import HumanAlone, RuleUser, changing
from ...tasks.views import output_before
from ...users.judgement import LIKELY, TOLD, UNKNOWN, Felt, compare, first_output, questioned
from ...users.manner import RETHOUGHT, mistaken
from ...users.personas import Persona
from ...users.simulated import Changing, UserMind
from .client import Client, hopeless, problems, see, stirred, untold
from .language.advice import read_understood
from .language.profiles import read_profile, write_profile
from .language.statements import AMBIGUOUS, Fact, say_accepted, say_fact, say_vaguely
from .perception import VISIBLE, Perception
from .plan import Plan, render_plan, try_plan
from .world.household import TOPICS, Topic

__all__ = ("FinanceClient", "finance_alone", "finance_changing", "finance_user")

_MINUTES: Final = (20.0, 60.0)
"""Minutes that a first plan takes an inexperienced client, at least and at most."""

_AGAIN_ALONE: Final = 0.25
"""Share of that time that it takes to correct it."""

_STUDIES: Final = 50_000
"""People's guess at the cost of studies."""

_STOCKS_PER_LOSS: Final = 4
"""People take the loss of a bad year for a quarter of the share of stocks."""

_SPENT: Final = 0.9
"""Share of the monthly surplus that people dare to plan with."""

_DRAFTS: Final = 2


def alone_step(client: Client, words: Random) -> Decision | None:
    """The next step of a client who works alone; None if they settle for the plan that they have."""
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
        return Decision((Submit(render_plan(better)),), seconds=60 * minutes * _AGAIN_ALONE)
    return None


def _by_thumb(client: Client, file: Mapping[str, JSON]) -> Plan:
    """A plan made without any table: the wishes, as far as the money goes."""
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


# --- the rule-driven client -----------------------------------------------------------------------


_ALL = "No, that is all. Thank you."
_AGAIN = (
    "I have been thinking:",
    "I see that differently now:",
    "Actually,",
    "On second thoughts:",
    "Forget what I said there:",
    "I have changed my mind:",
)
_WRONG = {
    "loss": ("That is too much risk:", "The risk is not right:", "I could not stand that:"),
    "cushion": ("The emergency fund is not right:", "That is not the reserve that I want:"),
    "study": ("The studies are not right:", "The child's studies are missing:"),
    "project": ("There is too little set aside:", "One expense is missing:"),
    "cover": ("The life cover is not right:", "That is not enough cover:"),
    "prepay": ("The mortgage is not right:", "One thing on the mortgage:"),
    "age": ("You have my age wrong:", "Not quite:"),
    "income": ("The income is not right:", "Not quite:"),
    "support": ("Not quite:", "You have that wrong:"),
}
_EDITED = (
    "I have changed that myself:",
    "I have put in a figure of my own:",
    "I have corrected one line myself:",
    "You will see a figure of my own there:",
)
_TOO_SMALL: Final = (
    "A chance of {chance}% is too small for me:",
    "I cannot live with a chance of {chance}%:",
    "With a chance of {chance}% I would not sleep well:",
)
_NAMES: Final[Mapping[Topic, str]] = {
    "loss": "the risk",
    "cushion": "the reserve",
    "age": "the age at which I stop",
    "income": "the income as pensioners",
    "study": "the child's studies",
    "project": "what we have to pay before long",
    "support": "the money for my mother",
    "cover": "the life cover",
    "prepay": "the mortgage",
}
"""A client's word for a topic."""

_LOOKS: Final = 4
"""Messages, the request included, after which a client who acts corrects the plan."""


def finance_user() -> UserMind:
    """The rules of the task for simulated users."""
    return RuleUser(FinanceClient())


def finance_alone() -> Policy:
    """The rules of the task for a client without an adviser."""
    return HumanAlone(FinanceClient())


def finance_changing() -> Changing:
    """Derives a client's changes of mind, for clients on rules and on models."""
    return changing(FinanceClient())


@final
class FinanceClient:
    """Decides by rules what a client thinks, says and does; a ``Person``."""

    def __init__(self) -> None:
        self._taken: Perception | None = None

    def see(self, view: View, profile: JSON) -> Client:
        """The client's current knowledge and wishes."""
        self._taken = self._taken or Perception(view)
        self._taken.follow()
        return see(view, self._taken, read_profile(profile))

    def wrong(self, state: Client, output: str) -> float:
        """How many wishes the client sees to be failed."""
        standing = output == state.output
        plan = state.plan if standing else try_plan(output)
        return float(len(problems(state, plan, current=standing)))

    def comment(self, state: Client, persona: Persona, words: Random) -> str | None:
        """Explains their change to the plan, tells a changed wish, complains, or adds a wish."""
        if state.explains is not None:
            return self._say(state, state.explains, words, words.choice(_EDITED))
        if state.changed:
            return self._say(state, state.changed[0], words, words.choice(_AGAIN))
        wrong = problems(state, state.plan) if state.plan is not None else ()
        if wrong:
            topic = words.choice(wrong)
            return self._say(state, topic, words, words.choice(_WRONG[topic]))
        for goal, chance in hopeless(state).items():
            if goal not in state.protested:
                return self._protest(state, goal, chance, words)
        open_ = untold(state)
        if not open_:
            return None
        topic = open_[0] if state.plan is not None else words.choice(open_)
        return self._say_first(state, topic, persona, words)

    def answer(self, state: Client, question: str, persona: Persona, words: Random) -> str:
        """Answers the question, if they follow it, and adds a changed wish, if there is one."""
        asked = state.asked
        if not asked:
            return self.comment(state, persona, words) or _ALL
        first = self._answer(state, asked[0], persona, words)
        rest = [one for one in asked[1:] if words.random() >= persona.overlooks]
        return " ".join((first, *(self._say_first(state, one, persona, words) for one in rest)))

    def _answer(self, state: Client, topic: Topic, persona: Persona, words: Random) -> str:
        asked = state.asked
        if words.random() < persona.mishears:
            others = [one for one in TOPICS if one not in asked]
            topic = words.choice([one for one in others if one not in state.told] or others)
            return mistaken(_NAMES[topic], self._say_first(state, topic, persona, words), words)
        changed = [one for one in state.changed if one != topic]
        if topic in state.changed:
            said = self._say(state, topic, words, words.choice(_AGAIN))
        elif topic in state.accepted and not problems(state, state.plan):
            said = say_accepted(words)
        else:
            said = self._say_first(state, topic, persona, words)
        if not changed:
            return said
        return f"{said} {words.choice(RETHOUGHT)} {self._say(state, changed[0], words)}"

    def work(self, state: Client, persona: Persona, words: Random) -> Decision | None:
        """Corrects one line of the plan that does not fit, once."""
        if not persona.acts or not state.edits or state.plan is None or state.drafts:
            return None
        just_said = state.told.keys() - state.ignored
        wrong = [topic for topic in problems(state, state.plan) if topic not in just_said]
        if len(state.sent) < _LOOKS or not wrong:
            return None
        edited = _edit(state, wrong[0])
        return None if edited == state.plan else Decision((Submit(render_plan(edited)),))

    def content(self, state: Client, persona: Persona) -> bool | str:
        """Whether no wish is open that they care to mention, or they are tired of it."""
        if state.plan is None:
            return False
        if state.tired:
            return "tired: they leave it at the plan that there is"
        wrong, small = problems(state, state.plan), hopeless(state)
        if persona.contentment < 1.0:
            enough = len(wrong) + len(small) <= (1.0 - persona.contentment) * len(TOPICS)
            if enough and len(state.sent) > 2 and state.changed:
                return "settles for it, without saying what they want now"
            return enough and len(state.sent) > 2 and (not small or _resigned(small))
        if wrong or state.changed or len(untold(state)) > persona.untold:
            return False
        if small:
            return not (small.keys() - state.protested) and _resigned(small)
        return True

    def rate(self, state: Client, view: View) -> Felt | None:
        """Compares how likely each wish is met now, and was met at the client's last act."""
        missing = [t for t in state.asked if state.held[t] and t not in state.told]
        about = _NAMES[missing[0]] if missing else ""
        if not state.output:
            return questioned(about)
        before = output_before(view)
        now = _met(state, state.plan, standing=True)
        if not before:
            return first_output(now)
        since = view.last_act
        stated = [m.text for m in view.messages if m.actor != view.me and m.version <= since]
        understood = {one.topic: one.value for text in stated for one in read_understood(text)}
        then = msgspec.structs.replace(state, understood=understood, chances=state.chances_before)
        return compare(
            _met(then, try_plan(before), standing=before == state.output),
            now,
            changed=before.strip() != state.output.strip(),
            about=about,
            complained=any(topic in state.ignored for topic in problems(state, state.plan)),
        )

    def change(self, state: Client) -> ChangeProfile | None:
        """Changes their wishes according to what they have seen and heard."""
        profile = state.profile
        moved = stirred(state)
        if not moved:
            return None
        for topic in moved:
            profile = profile.after(topic)
        return ChangeProfile(write_profile(profile), "; ".join(moved.values()))

    def alone(self, state: Client, words: Random) -> Decision | None:
        """Reads up, plans by rules of thumb, looks at a projection, and corrects the plan once."""
        return alone_step(state, words)

    def _say(self, state: Client, topic: Topic, words: Random, after: str = "") -> str:
        return say_fact(Fact(topic, state.held[topic]), words, state.profile.project, after)

    def _protest(self, state: Client, goal: Topic, chance: float, words: Random) -> str:
        """Objects to a chance that is too small, and states their wish; an untold one first."""
        asks = (
            "income" if goal == "age" and state.told.get("income") != state.held["income"] else goal
        )
        began = words.choice([text.format(chance=f"{chance:.0f}") for text in _TOO_SMALL])
        return self._say(state, asks, words, began)

    def _say_first(self, state: Client, topic: Topic, persona: Persona, words: Random) -> str:
        """States a wish: perhaps vaguely the first time, plainly after that."""
        vague = topic in AMBIGUOUS.keys and topic not in state.hinted and state.held[topic]
        if vague and not _pressed(state, topic) and words.random() < persona.ambiguous:
            return say_vaguely(Fact(topic, state.held[topic]), words, state.profile.project)
        return self._say(state, topic, words)


def _met(client: Client, plan: Plan | None, *, standing: bool) -> dict[str, float]:
    """How likely a plan meets each of their wishes, as far as they can tell."""
    settled = (
        client.accepted - client.told.keys()
    )  # they do not accept a proposal on a topic that they have raised
    wrong = problems(msgspec.structs.replace(client, accepted=settled), plan, current=standing)
    small = hopeless(client)
    met: dict[str, float] = {}
    for topic, value in client.held.items():
        if value:
            likely = TOLD if topic in client.told else UNKNOWN
            known = topic in VISIBLE or topic in settled
            if known or client.understood.get(topic) == value:
                likely = LIKELY
            met[_NAMES[topic]] = 0.0 if topic in wrong or topic in small else likely
    return met


def _resigned(small: Mapping[Topic, float]) -> str:
    """Why they leave although the chance of a goal is small."""
    goals = spelled([_NAMES[goal] for goal in small])
    return f"leaves it at that, although the chance is small for {goals}"


def _pressed(state: Client, topic: Topic) -> bool:
    """Whether the question offers figures to choose from, or asks for one exactly."""
    return any(
        word in state.question.lower() for word in ("exactly", "what sum", "which sum", " or ")
    )


def _edit(state: Client, topic: Topic) -> Plan:
    """The plan with the client's own figure; any savings it takes come out of the invested sum."""
    plan, held = state.plan or Plan(), state.held[topic]
    if topic == "prepay":
        return msgspec.structs.replace(plan, prepay=held)
    if topic == "cover":
        return msgspec.structs.replace(plan, cover=held * state.profile.salary)
    if topic == "project":
        rest = max(0, plan.invested - (held - plan.project))
        return msgspec.structs.replace(plan, project=held, invested=rest)
    if topic == "cushion":
        reserve = held * state.profile.spending
        rest = max(0, plan.invested - (reserve - plan.emergency))
        return msgspec.structs.replace(plan, emergency=reserve, invested=rest)
    return plan
