"""The manners of simulated people: asking back, repeating, refusing, complaining and praising.

The rules of a task choose the message; the persona's rates decide how it is put. Added sentences come
before the message, and say nothing about the task.
"""

from __future__ import annotations

import re
from itertools import islice
from random import Random
from typing import Final, NamedTuple, final

import msgspec

from ..engine.events import ProgressRated
from ..engine.rounds import PRODUCTIVE, is_act, is_unproductive
from ..engine.session.decisions import Approve, Decision, Finish, Rate, Say, Verb
from ..engine.session.view import View
from ..engine.text import count_words
from .deferrals import is_deferral
from .personas import Persona
from .simulated import UserIntent, UserMind

__all__ = ("ADDED", "CHECKING", "QUERIES", "Mannered", "gives_up", "is_query")

QUERIES: Final = (
    "What do you mean by that?",
    "Sorry, what are you asking me exactly?",
    "How do you mean that?",
    "Could you explain what you mean?",
    "I am not sure that I follow. What do you mean?",
    "What exactly do you want to hear from me?",
    "Can you put that in other words?",
    "Before I say something wrong: what do you mean?",
    "Hm, I don't get the question. What is it about?",
    "Could you say that in simpler words?",
    "What is it that you need to know?",
    "Sorry, I got lost. What was the question?",
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
    "Can you fix one thing for me?",
    "Could you look at one point once more?",
    "Do you see a way to work this in?",
    "May I point something out?",
)
"""Questions before an unprompted message."""

CHECKING: Final = (
    "Is that what you want to know?",
    "You mean this one, right?",
    "Is that what keeps you from going on?",
    "Is that important for what you do next?",
    "Do I understand the question right?",
    "Is it all right if I keep it short?",
    "Does that make much of a difference?",
    "Can you work with this?",
    "Is this what you mean?",
    "Can I answer that in one sentence?",
    "That is what you are after, isn't it?",
    "Will that do as an answer?",
)
"""Questions before an answer."""

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
    "I am saying this so that we understand each other.",
    "There is a point that I keep coming back to.",
    "I had to look at this twice before I saw it.",
    "I hope that this is not too much trouble.",
    "I would rather tell you now than at the end.",
    "It is only one point, but it bothers me.",
    "I know that this is a lot to ask.",
)
"""Before what a person says of an output."""

_EARLY: Final = (
    "I should have mentioned this at the very beginning.",
    "Let me say this as clearly as I can.",
    "Here is something that was not in my request.",
    "This may save you some time later on.",
    "I forgot to mention something when I wrote to you.",
    "While you are at it, here is one more point.",
    "It just came to my mind while I was waiting.",
    "I would rather tell you now than at the end.",
)
"""Before an unprompted message while the agent works on the first output."""

_MUSINGS: Final = (
    "I had to think about that for a moment.",
    "I did not expect that question, but all right.",
    "I hope that I have understood this right.",
    "That is a good question, to be honest with you.",
    "I will try to be as clear as I can.",
    "I have not thought about this very much so far.",
    "That is easier to ask than it is to answer.",
    "I am fairly sure about this one, for what it is worth.",
    "I will answer this as well as I can.",
    "Let me see how I can put this best.",
)
"""Before an answer."""

_READING: Final = (
    "It took me a moment to read all of this.",
    "I have just read all of what you sent me.",
    "That was quite a lot to read for me.",
    "I have gone through all of your message now.",
)
"""After a long message."""

_WORK: Final = (
    "That took me a while, to be honest.",
    "I have tried it the way you said.",
    "I am not quite sure of it, but here it is.",
    "I did this as well as I could.",
    "I had to start over once, but now it is there.",
    "I went through it step by step this time.",
)
"""Before a report on their own work."""

_AGAIN: Final = (
    "As I said before:",
    "I have said this already:",
    "To repeat myself:",
    "Let me repeat that:",
    "I will say it again:",
)
_REFUSALS: Final = (
    "No, I would rather not.",
    "No, please leave that for now.",
    "No, I do not want that at the moment.",
    "No. I want to think about that first.",
    "No, not now.",
    "No, let us leave that aside.",
    "No, that is not what I need at the moment.",
)

ADDED: Final = tuple(
    dict.fromkeys(
        (
            *(*_ASKING, *CHECKING, *_COMPLAINTS, *_PRAISE, *_AGAIN),
            *(*_ASIDES, *_EARLY, *_MUSINGS, *_READING, *_WORK),
        )
    )
)
"""Every sentence that can precede a message."""

_REPLY: Final = re.compile(
    r"\W*(?:yes|yeah|sure|no|nothing|none|please do|go on|ok(?:ay)?)\b", re.IGNORECASE
)

_CONSENT: Final = re.compile(
    r"\W*(?:yes|yeah|sure|please do|go on|ok(?:ay)?)\b(?:\W+\w+){0,3}\W*", re.IGNORECASE
)
_OFFER: Final = re.compile(
    r"\b(?:shall|may|can|could) I\b|\bI (?:could|can)\b|\bdo you (?:also wonder|want me to)\b|"
    r"\bwould you like me to\b",
    re.IGNORECASE,
)

_OPEN: Final = re.compile(
    r"\b(?:anything|something) (?:else|different)\b|\bbe different\b|\bnext\?|\bnow\?",
    re.IGNORECASE,
)
"""A question that leaves everything open, so that people do not ask what it means."""

_LONG: Final = 30
"""Words of a message that take a moment to read."""

_FED_UP: Final = 15
"""Unproductive rounds in a row, by their own rating, after which a person gives up."""

_LET_DOWN: Final = 3
"""Unproductive rounds in a row, without any question, after which a person who leaves has given up."""

_UNSERVED: Final = 25
"""Messages without any output after which a person gives up."""


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
        if gives_up(view) and any(isinstance(verb, Say) for verb in decision.verbs):
            return Decision((Finish("this leads nowhere", "abandoned"),))
        words = Random(_seed(view))
        if intent == "answer":
            decision = self._answered(decision, view, persona, words)
        if any(isinstance(verb, Finish) for verb in decision.verbs) and _is_let_down(view):
            decision = msgspec.structs.replace(
                decision, verbs=tuple(_given_up(verb) for verb in decision.verbs)
            )
        said = [verb for verb in decision.verbs if isinstance(verb, Say)]
        if len(said) != 1 or is_query(said[0].text) or _REPLY.match(said[0].text):
            return decision  # a yes or a no comes first
        text = said[0].text
        if is_deferral(text):
            return decision  # a deferral says all that there is to say
        alone = intent == "feedback" and len(decision.verbs) == 1
        before = await self._before(text, view, persona, words, _situation(decision, view, intent))
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
        if isinstance(first, Say) and _is_offered(view) and _CONSENT.fullmatch(first.text):
            if words.random() < persona.refuses:
                return Decision((Say(words.choice(_REFUSALS)),))
            return decision
        answers = [type(verb) for verb in decision.verbs] == [Say] and _is_asked(view)
        if _OPEN.search(view.messages[-1].text if view.messages else ""):
            return decision
        if answers and not asks_back and words.random() < persona.queries:
            return Decision((Say(words.choice(QUERIES)),))
        return decision

    async def _before(
        self, text: str, view: View, persona: Persona, words: Random, situation: _Situation
    ) -> str:
        """The sentences before a message: praise or complaint, then a question or an aside."""
        felt, puts, aside = words.random(), words.random(), words.random()
        parts = []
        if felt < max(persona.complains, persona.praises) and _has_acted(view):
            rating = await self._mind.rate(view, persona)
            value = PRODUCTIVE if rating is None else rating.rating
            if is_unproductive(value) and felt < persona.complains:
                parts.append(words.choice(_COMPLAINTS))
            elif value > PRODUCTIVE and felt < persona.praises:
                parts.append(words.choice(_PRAISE))
        if situation.questions and "?" not in text and puts < persona.questions:
            parts.append(words.choice(situation.questions))
        elif aside < persona.asides:
            parts.append(words.choice(situation.asides))
        return " ".join(parts)


class _Situation(NamedTuple):
    """The sentences that fit before a message: questions, if any do, and asides."""

    questions: tuple[str, ...]
    asides: tuple[str, ...]


def _situation(decision: Decision, view: View, intent: UserIntent) -> _Situation:
    """What fits: a report on one's work, an answer, or an unprompted message."""
    if len(decision.verbs) > 1 or _has_worked(view):
        return _Situation((), _WORK)
    last = view.messages[-1] if view.messages else None
    heard = last is not None and last.actor != view.me and count_words(last.text) >= _LONG
    read = _READING if heard else ()
    if intent == "answer":
        return _Situation(CHECKING, (*_MUSINGS, *read))
    return _Situation(_ASKING, (*(_EARLY if view.snapshot is None else _ASIDES), *read))


def gives_up(view: View) -> bool:
    """Whether a person has had enough: a series of unproductive rounds, or no output for long."""
    if view.snapshot is None:
        return len(_own(view)) > _UNSERVED
    return _unproductive(view, _FED_UP)


def _is_let_down(view: View) -> bool:
    """Whether their last messages changed nothing, although the agent had asked nothing."""
    heard = [one.text for one in view.messages if one.role == "agent"][-_LET_DOWN:]
    return _unproductive(view, _LET_DOWN) and not any("?" in text for text in heard)


def _unproductive(view: View, rounds: int) -> bool:
    """Whether the person has rated so many rounds in a row as unproductive, up to the last."""
    rated = (r.event for r in reversed(view.records) if r.kind == "ProgressRated")
    found = (r.rating for r in rated if isinstance(r, ProgressRated))
    last = list(islice(found, rounds))
    return len(last) == rounds and all(map(is_unproductive, last))


def _given_up(verb: Verb) -> Verb:
    """The verb; an end becomes one out of disappointment."""
    if not isinstance(verb, Finish) or verb.reason != "finished":
        return verb
    detail = "nothing comes of it" if verb.detail.startswith("satisfied") else verb.detail
    return Finish(detail, "abandoned")


def _has_worked(view: View) -> bool:
    """Whether the person has changed the output since their last message."""
    for record in reversed(view.records):
        if record.actor == view.me and record.kind in ("MessageSent", "SnapshotTaken"):
            return record.kind == "SnapshotTaken"
    return False


def _is_offered(view: View) -> bool:
    """Whether the agent's last message offers to do something."""
    last = view.messages[-1] if view.messages else None
    return last is not None and last.role == "agent" and _OFFER.search(last.text) is not None


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
