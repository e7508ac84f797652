"""The manners of simulated people: asking back, repeating, refusing, complaining and praising.

The rules of a task choose the message; the persona's rates decide how it is put. Added sentences come
before the message, and say nothing about the task.
"""

from __future__ import annotations

import re
from random import Random
from typing import Final, final

import msgspec

from ..engine.rounds import is_act
from ..engine.session.decisions import Approve, Decision, Rate, Say
from ..engine.session.view import View
from .personas import Persona
from .simulated import UserIntent, UserMind

__all__ = ("ADDED", "QUERIES", "Mannered", "is_query")

QUERIES: Final = (
    "What do you mean by that?",
    "Sorry, what are you asking me exactly?",
    "How do you mean that?",
    "Could you explain what you mean?",
    "I am not sure that I follow. What do you mean?",
    "What exactly do you want to hear from me?",
    "Can you put that in other words?",
    "Before I say something wrong: what do you mean?",
)
"""Ways to ask what a question means."""

_ASKING: Final = (
    "Could you take this into account?",
    "Can you please keep this in mind?",
    "Would you mind changing something for me?",
    "Can I come back to one point?",
    "May I ask for something?",
    "Could we talk about one point again?",
    "Can you please help me with this one?",
    "Could I add one more thing?",
    "Would it be possible to respect this?",
    "Is there a way to deal with this?",
)
_COMPLAINTS: Final = (
    "That did not help me.",
    "This is frustrating, it gets no better.",
    "You are not listening to me.",
    "We are going round in circles, that is annoying.",
    "That was a waste of my time.",
    "This is getting frustrating.",
    "This does not help me at all.",
    "Honestly, I am disappointed.",
)
_PRAISE: Final = (
    "Great, thank you!",
    "Thank you, that is good.",
    "Very good, thank you so much.",
    "Perfect, thanks!",
    "Nice work so far.",
    "Great work, I like it.",
    "Thanks, that helps a lot.",
    "Excellent, that is a good step.",
)
_ASIDES: Final = (
    "I have thought about it a little more since then.",
    "Let me say this as clearly as I can.",
    "This matters more to me than it may seem.",
    "Sorry for coming with this so late.",
    "It took me a moment to read all of this.",
    "I am saying this so that we understand each other.",
    "I should have mentioned this at the very beginning.",
    "There is a point that I keep coming back to.",
    "It is a bit complicated to explain in a few words.",
    "I have just read all of what you sent me.",
    "I talked about this with somebody at home as well.",
    "I had to look at this twice before I saw it.",
)
_AGAIN: Final = (
    "As I said before:",
    "I have said this already:",
    "To repeat myself:",
    "Let me repeat that:",
    "I will say it again:",
)
_REFUSALS: Final = (
    "No, I would rather not.",
    "Please leave that for now.",
    "I do not want that at the moment.",
    "No. I want to think about that first.",
)

ADDED: Final = (*_ASKING, *_COMPLAINTS, *_PRAISE, *_ASIDES, *_AGAIN)
"""Every sentence that can precede a message."""

_REPLY: Final = re.compile(
    r"\W*(?:yes|yeah|sure|no|nothing|none|please do|go on|ok(?:ay)?)\b", re.IGNORECASE
)

_GOOD: Final = 4
_BAD: Final = 2
"""The lowest rating that earns praise, and the highest that earns a complaint."""


def is_query(text: str) -> bool:
    """Whether a message asks back what was meant, and nothing else."""
    return text in QUERIES


@final
class Mannered:
    """A ``UserMind`` that talks as people do; one for each session.

    Args:
        mind: says what there is to say.
    """

    def __init__(self, mind: UserMind) -> None:
        self._mind = mind

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        """The mind's choice."""
        return await self._mind.choose(view, persona)

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        """The mind's rating."""
        return await self._mind.rate(view, persona)

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        """The mind's decision; or a question back, a refusal, or a repetition."""
        decision = await self._mind.compose(view, persona, intent)
        if decision is view.pending:
            return decision
        words = Random(_seed(view))
        if intent == "answer":
            decision = self._answered(decision, view, persona, words)
        said = [verb for verb in decision.verbs if isinstance(verb, Say)]
        if len(said) != 1 or is_query(said[0].text) or _REPLY.match(said[0].text):
            return decision  # a yes or a no comes first
        text = said[0].text
        alone = intent == "feedback" and len(decision.verbs) == 1
        talks = len(decision.verbs) == 1
        before = await self._before(text, view, persona, words, asks=talks)
        last = _last_statement(view)
        if alone and view.snapshot is not None and last and words.random() < persona.repeats:
            before, text = words.choice(_AGAIN), last
        if not before:
            return decision
        new = msgspec.structs.replace(said[0], text=f"{before} {text}")
        verbs = tuple(new if verb is said[0] else verb for verb in decision.verbs)
        return Decision(verbs, decision.seconds)

    def _answered(
        self, decision: Decision, view: View, persona: Persona, words: Random
    ) -> Decision:
        """An answer, or a question back; an approval, or a refusal: never two of these in a row."""
        [first, *_] = decision.verbs or (None,)
        if isinstance(first, Approve) and first.approved:
            refused = any(
                asked.given is not None and not asked.given.approved
                for asked in view.approvals.values()
            )
            if not refused and words.random() < persona.refuses:
                no = Approve(first.asked, False, words.choice(_REFUSALS))
                return Decision((no, *decision.verbs[1:]), decision.seconds)
        own = _own(view)
        asks_back = len(own) > 1 and is_query(own[-1])
        answers = [type(verb) for verb in decision.verbs] == [Say] and _is_asked(view)
        if answers and not asks_back and words.random() < persona.queries:
            return Decision((Say(words.choice(QUERIES)),))
        return decision

    async def _before(
        self, text: str, view: View, persona: Persona, words: Random, *, asks: bool
    ) -> str:
        """The sentences before a message: praise or complaint, then a question or an aside."""
        felt, puts, aside = words.random(), words.random(), words.random()
        parts = []
        if felt < max(persona.complains, persona.praises) and _has_acted(view):
            rating = await self._mind.rate(view, persona)
            value = 3 if rating is None else rating.rating
            if value <= _BAD and felt < persona.complains:
                parts.append(words.choice(_COMPLAINTS))
            elif value >= _GOOD and felt < persona.praises:
                parts.append(words.choice(_PRAISE))
        if asks and "?" not in text and puts < persona.questions:
            parts.append(words.choice(_ASKING))
        elif aside < persona.asides:
            parts.append(words.choice(_ASIDES))
        return " ".join(parts)


def _seed(view: View) -> str:
    """The seed of a person's next act, the same while a decision is reconsidered."""
    acts = sum(1 for record in view.records if record.actor == view.me and is_act(record))
    return f"{view.seed}/{view.me}/{acts}/manner"


def _own(view: View) -> list[str]:
    return [message.text for message in view.messages if message.actor == view.me]


def _is_asked(view: View) -> bool:
    last = view.messages[-1] if view.messages else None
    return last is not None and last.role == "agent" and "?" in last.text


def _has_acted(view: View) -> bool:
    """Whether an agent acted last: only then is there a round to be felt about."""
    for record in reversed(view.records):
        if is_act(record):
            return record.role == "agent"
    return False


def _last_statement(view: View) -> str:
    """The person's last statement without added sentences; empty for the request and for questions."""
    own = _own(view)[1:]
    if not own or "?" in own[-1].split(" ")[-1]:
        return ""
    text = own[-1]
    for _ in range(3):
        for added in ADDED:
            text = text.removeprefix(f"{added} ")
    return text
