"""The manners of simulated people: asking back, repeating, refusing, complaining and praising.

The rules of a task choose the message; the persona's rates decide how it is put. Added sentences come
before the message, questions after an answer, and say nothing about the task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from random import Random
from typing import Final, NamedTuple, final

import msgspec

from ..engine.events import ProgressRated
from ..engine.rounds import PRODUCTIVE, is_act, is_unproductive
from ..engine.session.decisions import Approve, Decision, Finish, Rate, Say, Verb
from ..engine.session.view import View
from ..engine.text import count_words
from .cognition.mind import MOODS
from .deferrals import is_deferral
from .personas import Persona
from .simulated import UserIntent, UserMind

__all__ = (
    "ADDED",
    "CHECKING",
    "QUERIES",
    "RETHOUGHT",
    "SATISFIED",
    "Mannered",
    "fresh",
    "gives_up",
    "is_open",
    "is_query",
    "mistaken",
    "plain",
)

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
    "Can you work with that?",
    "Can you go on with that?",
    "Could you go on from there?",
    "Can you help me with that?",
    "Could you use that, please?",
    "Can you carry on with that?",
    "Could you continue from there, please?",
    "Can we go on from there?",
    "Can you make something of that?",
    "Could you go on, please?",
    "Could we continue with that?",
    "Can you use it like that?",
)
"""Questions after an answer: like those of people, they ask for work, and not whether the answer was clear."""

_COMPLAINTS: Final = (
    "That did not help me.",
    "This does not help me at all.",
    "That was not helpful.",
    "This is no use to me.",
    "That is disappointing.",
    "This did not help at all.",
)
"""After a round that was worth nothing."""

_FRUSTRATED: Final = (
    "This is frustrating, it gets no better.",
    "You are not listening to me.",
    "We are going round in circles, that is annoying.",
    "This is getting frustrating.",
    "That was a waste of my time.",
    "Honestly, I am disappointed.",
)
"""After several rounds in a row that were worth nothing."""

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
"""Before an answer, or a report on their own work."""

_THANKS: Final = (
    "Thanks, that is better.",
    "Good, that part is fine now.",
    "Thank you for that.",
    "That was good work.",
    "Thanks, we are getting there.",
    "Good so far, thank you.",
)
"""Before something that is still open."""

_ASIDES: Final = (
    "I have thought about it a little more since then.",
    "Let me say this as clearly as I can.",
    "This matters more to me than it may seem.",
    "I am saying this so that we understand each other.",
    "Here is one point that is on my mind.",
    "I want to be open with you about this.",
    "I hope that this is not too much trouble.",
    "I would rather tell you now than at the end.",
    "I have gone through it, and here is what I think.",
    "I know that this is a lot to ask.",
)
"""Before what a person says of an output."""

_CURIOUS: Final = (
    "There is something that I would like to know.",
    "I have one more question.",
    "Something else interests me.",
    "Here is what I am curious about.",
    "I would like to understand one more thing.",
    "Let me ask something.",
    "One thing is not clear to me yet.",
    "This may be easy for you to find out.",
)
"""Before a question."""

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
    "I did not expect to be asked that.",
    "I hope that I have understood this right.",
    "I will try to be as clear as I can.",
    "I have not thought about this very much so far.",
    "I will answer this as well as I can.",
    "I have to guess a little here.",
)
"""Before an answer."""

_READING: Final = (
    "It took me a moment to read your message.",
    "I have just read what you sent me.",
    "That was quite a lot to read for me.",
    "Your message took me a while.",
)
"""After a long message."""

_WORK: Final = (
    "That took me a while, to be honest.",
    "I am not quite sure of it, but here it is.",
    "I did this as well as I could.",
    "I had to start over once, but now it is there.",
    "I had a go at it myself.",
    "I had to look at it twice.",
)
"""Before a report on their own work."""

_AGAIN: Final = (
    "As I said before:",
    "I have said this already:",
    "To repeat myself:",
    "Let me repeat that:",
    "I will say it again:",
)
RETHOUGHT: Final = (
    "I have changed my mind on something.",
    "I see something differently now.",
    "I have to take something back.",
    "I have to correct what I said before.",
)
"""Before what a person said otherwise before; also after an answer."""

_MISTAKEN: Final = (
    "You mean {about}, I guess.",
    "That is about {about}, I suppose.",
    "If I get you right, this is about {about}.",
    "I take it that you are asking about {about}.",
)
"""Before an answer to a question that was taken for another one."""

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
            *(*_ASKING, *CHECKING, *_COMPLAINTS, *_FRUSTRATED, *_PRAISE, *_THANKS, *_AGAIN),
            *(*_ASIDES, *_CURIOUS, *_EARLY, *_MUSINGS, *_READING, *_WORK),
        )
    )
)
"""Every sentence that can be added to a message."""

_BEFORE: Final = tuple(f"{added} " for added in ADDED)
_AFTER: Final = tuple(f" {added}" for added in ADDED)

_REPLY: Final = re.compile(
    r"\W*(?:(?:well|hmm?|right|okay), )?(?:yes|yeah|sure|no|nothing|none|please do|go on|ok(?:ay)?(?!, ))\b",
    re.IGNORECASE,
)
_UNWILLING: Final = re.compile(
    r"\b(?:don't|do not) know\b|\bno idea\b|\bnot sure\b|\bjust (?:tell|give) me\b|\bnot now\b|\bskip (?:that|it)\b|"
    r"\bI'd rather (?:do|not)\b",
    re.IGNORECASE,
)
"""Signs of a message that gives or allows no answer: nothing is added to it."""

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

_LONG: Final = 80
"""Words of a message that take a while to read."""

_HOPES: Final = 3
"""Messages, the request included, after which people complain about a missing output."""

_FED_UP: Final = 15
"""Unproductive rounds in a row, by their own rating, after which a person gives up."""

_LET_DOWN: Final = 3
"""Unproductive rounds in a row, without any question, after which a person who leaves has given up."""

_ANNOYED: Final = 2
"""Unproductive rounds in a row, before the last one, after which people are frustrated."""

_PLEASED: Final = ("satisfied", "settles")
"""How a person's reason begins if they have what they wanted, or enough of it."""

_WORDS: Final = 5
"""Words of a sentence that is not said twice by chance."""

_ENDS: Final = re.compile(r"(?<=[.!?])\s")
_OPENED: Final = re.compile(r"[\w', ]{1,40}: ")
"""The beginning of a message that has an opening already."""

SATISFIED: Final = "satisfied with the output"
"""A person's reason to end if nothing is open any more."""

_SAME: Final = 4
"""How often in a row the agent may say the same thing to no effect before a person gives up."""

_UNSERVED: Final = 25
"""Messages without any output after which a person gives up."""


_ANSWERS: Final = 0.5
"""How often an answer begins with an aside, relative to other messages."""


def is_query(text: str) -> bool:
    """Whether a message asks back what was meant, and nothing else."""
    return text in QUERIES


@lru_cache(maxsize=1024)
def is_open(question: str) -> bool:
    """Whether a question leaves everything open, such as what to do next."""
    return _OPEN.search(question) is not None


@lru_cache(maxsize=1024)
def plain(text: str) -> str:
    """A message without the sentences that were added to it."""
    while text.startswith(_BEFORE) or text.endswith(_AFTER):
        for added in ADDED:
            if text.startswith(f"{added} ") or text.endswith(f" {added}"):
                text = text.removeprefix(added).removesuffix(added).strip()
    return text


def fresh(texts: Sequence[str], said: Sequence[str], words: Random) -> str:
    """One of the texts, preferably one that has not been said yet."""
    new = [text for text in texts if not any(text in one for one in said)]
    return words.choice(new or texts)


def mistaken(about: str, answer: str, words: Random) -> str:
    """An answer of a person who takes a question for one about something else."""
    return f"{words.choice([text.format(about=about) for text in _MISTAKEN])} {answer}"


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
        speaks = any(isinstance(verb, Say) for verb in decision.verbs)
        if speaks and (gives_up(view) or _is_going_round(view)):
            return Decision((Finish("this leads nowhere", "abandoned"),))
        words = Random(_seed(view))
        if intent == "answer":
            decision = self._answered(decision, view, persona, words)
        if any(isinstance(verb, Finish) for verb in decision.verbs):
            rating = await self._mind.rate(view, persona) if _has_acted(view) else None
            verbs = tuple(_ended(verb, view, rating) for verb in decision.verbs)
            decision = msgspec.structs.replace(decision, verbs=verbs)
        said = [verb for verb in decision.verbs if isinstance(verb, Say)]
        if len(said) != 1 or is_query(said[0].text) or _REPLY.match(said[0].text):
            return decision  # a yes or a no comes first
        text = said[0].text
        if is_deferral(text) or _UNWILLING.search(text):
            return decision  # that says all that there is to say
        alone = intent == "feedback" and len(decision.verbs) == 1
        situation = _situation(decision, view, intent)
        before, after = await self._around(text, view, persona, words, situation)
        last = _last_statement(view)
        if alone and view.snapshot is not None and last and words.random() < persona.repeats:
            before, text, after = fresh(_AGAIN, _own(view), words), last, ""
        elif _repeats(text, view):
            before, after = fresh(_AGAIN, _own(view), words), ""
        whole = " ".join(part for part in (before, text, after) if part)
        if whole == text:
            return decision
        new = msgspec.structs.replace(said[0], text=whole)
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
                no = Approve(first.asked, False, fresh(_REFUSALS, _own(view), words))
                return Decision((no, *decision.verbs[1:]), decision.seconds)
        own = _own(view)
        asks_back = len(own) > 1 and is_query(own[-1])
        if isinstance(first, Say) and _is_offered(view) and _CONSENT.fullmatch(first.text):
            if words.random() < persona.refuses:
                return Decision((Say(fresh(_REFUSALS, own, words)),))
            return decision
        answers = [type(verb) for verb in decision.verbs] == [Say] and _is_asked(view)
        if is_open(view.messages[-1].text if view.messages else ""):
            return decision
        if answers and not asks_back and words.random() < persona.queries:
            return Decision((Say(fresh(QUERIES, own, words)),))
        return decision

    async def _around(
        self, text: str, view: View, persona: Persona, words: Random, situation: _Situation
    ) -> tuple[str, str]:
        """The sentences before a message and after it: praise or complaint, a question or an aside."""
        feels, puts, aside = words.random(), words.random(), words.random()
        own, share = _own(view), _ANSWERS if situation.answers else 1.0
        before: list[str] = []
        after = ""
        texts: Sequence[str]
        if feels < max(persona.complains, persona.praises) and _has_acted(view):
            rating = await self._mind.rate(view, persona)
            felt = rating is not None and rating.explanation not in MOODS
            value = rating.rating if rating is not None and felt else PRODUCTIVE
            hopes = view.snapshot is None and len(own) <= _HOPES
            if is_unproductive(value) and feels < persona.complains and not hopes:
                texts = _FRUSTRATED if _unproductive(view, _ANNOYED) else _COMPLAINTS
                before.append(fresh(texts, own, words))
            elif value > PRODUCTIVE and feels < persona.praises:
                texts = _PRAISE if situation.answers or situation.works else _THANKS
                before.append(fresh(texts, own, words))
        if situation.questions and "?" not in text and puts < persona.questions:
            question = fresh(situation.questions, own, words)
            if situation.answers:
                after = question
            else:
                before.append(question)
        elif not before and aside < share * persona.asides and not _OPENED.match(text):
            texts = _CURIOUS if "?" in text and not situation.works else situation.asides
            before.append(fresh(texts, own, words))
        return " ".join(before), after


class _Situation(NamedTuple):
    """The questions and asides that fit a message, and whether it is an answer or a report on one's work."""

    questions: tuple[str, ...]
    asides: tuple[str, ...]
    answers: bool = False
    works: bool = False


def _situation(decision: Decision, view: View, intent: UserIntent) -> _Situation:
    """What fits: a report on one's work, an answer, or an unprompted message."""
    if len(decision.verbs) > 1 or _has_worked(view):
        return _Situation((), _WORK, works=True)
    last = view.messages[-1] if view.messages else None
    heard = last is not None and last.actor != view.me and count_words(last.text) >= _LONG
    read = _READING if heard else ()
    if intent == "answer":
        return _Situation(CHECKING, (*_MUSINGS, *read), answers=True)
    return _Situation(_ASKING, (*(_EARLY if view.snapshot is None else _ASIDES), *read))


def gives_up(view: View) -> bool:
    """Whether a person has had enough: a series of unproductive rounds, or no output for long."""
    if view.snapshot is None:
        return len(_own(view)) > _UNSERVED
    return _unproductive(view, _FED_UP)


def _is_let_down(view: View, last: Rate | None) -> bool:
    """Whether their last messages changed nothing, although the agent had asked nothing.

    Args:
        view: theirs.
        last: the rating of the last round, if it is not in the view yet.
    """
    heard = [one.text for one in view.messages if one.role == "agent"][-_LET_DOWN:]
    if any("?" in text for text in heard):
        return False
    worse = last is not None and is_unproductive(last.rating)
    return _unproductive(view, _LET_DOWN) or (worse and _unproductive(view, _LET_DOWN - 1))


def _is_going_round(view: View) -> bool:
    """Whether the agent says the same again and again, and nothing comes of it."""
    heard = [one.text for one in view.messages if one.role == "agent"][-_SAME:]
    return len(heard) == _SAME and len({*heard}) == 1 and _unproductive(view, _LET_DOWN)


def _unproductive(view: View, rounds: int) -> bool:
    """Whether the person has rated so many rounds in a row as unproductive, up to the last."""
    rated = (r.event for r in reversed(view.records) if r.kind == "ProgressRated")
    found = (r.rating for r in rated if isinstance(r, ProgressRated))
    last = list(islice(found, rounds))
    return len(last) == rounds and all(map(is_unproductive, last))


def _ended(verb: Verb, view: View, last: Rate | None) -> Verb:
    """The verb; an end follows from what the person thinks of the last rounds.

    They have given up if these changed nothing, if the last one made it worse, or if something that they
    wanted is left open after a round that was worth nothing.
    """
    if not isinstance(verb, Finish) or verb.reason != "finished":
        return verb
    worth = None if last is None else last.rating
    disappointed = worth is not None and is_unproductive(worth)
    pleased = verb.detail.startswith(_PLEASED)
    if _is_let_down(view, last) or (disappointed and (not pleased or worth == 1)):
        return Finish("nothing comes of it" if pleased else verb.detail, "abandoned")
    if disappointed and verb.detail == SATISFIED:
        return Finish("settles for it, since nothing more comes of it")
    return verb


def _repeats(text: str, view: View) -> bool:
    """Whether the person has said a part of a message before, word for word; not in their request."""
    said = "\n".join(_own(view)[1:]).lower()
    parts = (part.strip().lower() for part in _ENDS.split(text))
    return any(len(part.split()) >= _WORDS and part in said for part in parts)


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
    return f"{view.seed}/{view.me}/{view.acts}/manner"


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
    text = plain(own[-1]) if own else ""
    return "" if "?" in text else text
