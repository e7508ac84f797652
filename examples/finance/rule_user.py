"""The rule-driven client: answers, complains, corrects the plan, and learns what they want.

They know what they hold, not what they need. A figure that an adviser shows them, or somebody else's
story, may change what they hold; that is recorded, and from then on they want something else.
"""

from __future__ import annotations

from random import Random
from typing import Final, final

import msgspec

from ...engine.events import JSON
from ...engine.session.actors import Policy
from ...engine.session.decisions import ChangeProfile, Decision, Rate, Submit
from ...engine.session.view import View
from ...users.personas import Persona
from ...users.simulated import Changing, UserMind
from ..kit.ratings import compare
from ..kit.rule_user import HumanAlone, RuleUser, changing
from ..kit.views import output_before
from .alone import alone_step
from .client import Client, problems, see, stirred, untold
from .language.profiles import read_profile, write_profile
from .language.statements import AMBIGUOUS, Fact, say_accepted, say_fact, say_vaguely
from .perception import Perception
from .plan import Plan, render_plan, try_plan
from .world.household import TOPICS, Topic

__all__ = ("FinanceClient", "finance_alone", "finance_changing", "finance_user")

_ALL = "No, that is all. Thank you."
_AGAIN = ("I have been thinking:", "I see that differently now:", "Actually,")
_WRONG = {
    "loss": ("That is too much risk:", "The risk is not right:"),
    "cushion": ("The emergency fund is not right:", "That is not the reserve that I want:"),
    "study": ("The studies are not right:", "The child's studies are missing:"),
    "project": ("There is too little set aside:", "One expense is missing:"),
    "cover": ("The life cover is not right:", "That is not enough cover:"),
    "prepay": ("The mortgage is not right:", "One thing on the mortgage:"),
    "age": ("You have my age wrong:", "Not quite:"),
    "income": ("The income is not right:", "Not quite:"),
    "support": ("Not quite:", "You have that wrong:"),
}
_EDITED = ("I have changed that myself:", "I have put in a figure of my own:")
_LOOKS: Final = 4
"""Messages, the request included, after which a client who acts corrects the plan."""


def finance_user() -> UserMind:
    """The rules of the task for simulated users."""
    return RuleUser(FinanceClient())


def finance_alone() -> Policy:
    """The rules of the task for a client without an adviser."""
    return HumanAlone(FinanceClient())


def finance_changing() -> Changing:
    """What says how a client's mind has changed, on rules and on models."""
    return changing(FinanceClient())


@final
class FinanceClient:
    """What a client thinks, says and does, by rules; a ``Person``."""

    def __init__(self) -> None:
        self._taken: Perception | None = None

    def see(self, view: View, profile: JSON) -> Client:
        """What the client knows and wants now."""
        self._taken = self._taken or Perception(view)
        self._taken.follow()
        return see(view, self._taken, read_profile(profile))

    def wrong(self, state: Client, output: str) -> float:
        """How many wishes the client sees to be failed."""
        standing = output == state.output
        plan = state.plan if standing else try_plan(output)
        return float(len(problems(state, plan, current=standing)))

    def comment(self, state: Client, persona: Persona, words: Random) -> str | None:
        """Why they changed the plan; what they see otherwise; what is wrong; what nobody knows yet."""
        if state.explains is not None:
            return self._say(state, state.explains, words, words.choice(_EDITED))
        if state.changed:
            return self._say(state, state.changed[0], words, words.choice(_AGAIN))
        wrong = problems(state, state.plan) if state.plan is not None else ()
        if wrong:
            return self._say(state, wrong[0], words, words.choice(_WRONG[wrong[0]]))
        open_ = untold(state)
        if not open_:
            return None
        topic = open_[0] if state.plan is not None else words.choice(open_)
        return self._say_first(state, topic, persona, words)

    def answer(self, state: Client, question: str, persona: Persona, words: Random) -> str:
        """What was asked, if they follow; first of all what they see otherwise by now."""
        if state.changed:
            return self._say(state, state.changed[0], words, words.choice(_AGAIN))
        asked = state.asked
        if asked and words.random() < persona.mishears:
            asked = (words.choice([topic for topic in TOPICS if topic not in asked]),)
        if not asked:
            return self.comment(state, persona, words) or _ALL
        topic = asked[0]
        if topic in state.accepted and not problems(state, state.plan):
            return say_accepted(words)
        return self._say_first(state, topic, persona, words)

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

    def content(self, state: Client, persona: Persona) -> bool:
        """Whether no wish is open that they care to mention, or they are tired of it."""
        if state.plan is None:
            return False
        if state.tired:
            return True
        wrong = problems(state, state.plan)
        if persona.contentment < 1.0:
            return len(wrong) <= (1.0 - persona.contentment) * len(TOPICS) and len(state.sent) > 2
        return not wrong and not state.changed and len(untold(state)) <= persona.untold

    def rate(self, state: Client, view: View) -> Rate | None:
        """Compares the plan with that at the client's last act."""
        before = output_before(view)
        if not state.output:
            return Rate(3, "A fair question.") if state.question else Rate(2, "Nothing yet.")
        wrong = self.wrong(state, state.output)
        if not before:
            return Rate(4 if wrong < len(TOPICS) / 3 else 3, "A first plan is there.")
        was = float(len(problems(state, try_plan(before), current=False)))
        complained = any(topic in state.ignored for topic in problems(state, state.plan))
        return compare(was, wrong, changed=before != state.output, complained=complained)

    def change(self, state: Client) -> ChangeProfile | None:
        """What they hold by what they have seen and heard."""
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

    def _say_first(self, state: Client, topic: Topic, persona: Persona, words: Random) -> str:
        """A wish as it is said for the first time, perhaps vaguely; plainly after that."""
        vague = topic in AMBIGUOUS.keys and topic not in state.hinted and state.held[topic]
        if vague and not _pressed(state, topic) and words.random() < persona.ambiguous:
            return say_vaguely(Fact(topic, state.held[topic]), words, state.profile.project)
        return self._say(state, topic, words)


def _pressed(state: Client, topic: Topic) -> bool:
    """Whether the question offers figures to choose from, or asks for one exactly."""
    return any(
        word in state.question.lower() for word in ("exactly", "what sum", "which sum", " or ")
    )


def _edit(state: Client, topic: Topic) -> Plan:
    """The plan with the client's own figure; what it takes of the savings comes from what was invested."""
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
