"""The rule-driven analyst: reads as far as they can, asks on, objects, and decides when it is enough.

They alone know their profile, and say one thing at a time in their own words. A `Reading` tracks what
they have read and believe; they cannot tell a wrong belief from a right one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, final

import msgspec

from ...engine.events import JSON
from ...engine.session.decisions import Act, ChangeProfile, Decision, Submit
from ...engine.session.view import View
from ...engine.text import lines_of
from ...tasks.phrases import spelled
from ...tasks.views import awaits_reaction, is_working, outcomes, own_messages, trait, unannounced
from ...users.judgement import QUESTION, Felt, felt, questioned
from ...users.manner import mistaken, plain
from ...users.personas import Persona
from .analysis import Sheet, claims_of, look_at, query_for, sheet_of
from .attention import OWN_ANALYSIS, Reading
from .facts import DEFAULTS, RULINGS, Claim, Kind, Ruling, Topic, advice_on
from .instances import Wants, opened_by
from .language.messages import HUMAN, MessageReader, asks_to_rephrase, say_advice_wish
from .language.rulings import asked_rulings, read_rulings, say_ruling
from .language.topics import say_topic, wordings_of
from .profile import Profile, read_profile, sentences_of, write_profile
from .report import Assumed, ReportReader, say_advice, say_claim

__all__ = ("DataPerson", "Mind")

_ASKS = 2
"""Times that analysts ask the same thing before they give up on it."""

_TOO_MUCH = 8
"""Unread lines at which analysts complain."""

_TIRED = 20
"""Words that analysts can still take in when they stop."""

_TRIES_THEMSELVES = 0.3
"""Share of the people whose persona acts who rather look things up than ask again."""

_CARE = 0.6
"""Share of the tables that people, on their own, look at before they select from them."""

_NAMES: Final[Mapping[Kind, str]] = {
    "favourite": "what they like best in {about}",
    "price": "the price of {about}",
    "age": "young and old on {about}",
    "channel": "the channels for {about}",
    "quality": "the quality of the {about}",
}
_RULED: Final[Mapping[Ruling, str]] = {
    "pilot": "the first wave",
    "staff": "our own people",
    "zeros": "the lowest ratings",
    "airport": "the stores for travellers",
    "within": "how to compare",
}
"""An analyst's word for what a ruling is about, in none of the words by which rulings are read."""

_COUNTING: Final = "what counts and what does not"
_LEARNED: Final = (
    "Now I know about {about}.",
    "That answers my question about {about}.",
    "One question less: {about}.",
    "I did want to know about {about}.",
    "That is clear now: {about}.",
)
_NO_WISER: Final = (
    "I know no more than before about {about}.",
    "Still nothing on {about}.",
    "That does not tell me about {about}.",
    "I am no wiser about {about}.",
)
_NOTHING_NEW: Final = (
    "Nothing new for me in that.",
    "I knew all of that already.",
    "That adds nothing to what I know.",
)
_FLOODED: Final = (
    "That is more than I can take in.",
    "Too many lines for me to read.",
    "I cannot find what matters in all that text.",
)
_RIGHTLY_ASKED: Final = (
    "That has to be settled before one can count.",
    "Right to ask how to count that.",
    "Only I can know that, so it is good to be asked.",
    "A sensible question about the data.",
)
_ADVISED: Final = (
    "Now I have a recommendation to go by.",
    "There is advice in it now.",
    "It says what to do, at last.",
)
_CORRECTED: Final = (
    "The figures have been put right.",
    "What I had read before has changed.",
    "It says something else now, and I believe it.",
)
_HEEDED: Final = (
    "They go by what I said.",
    "My answer has been taken in.",
    "It counts the way I wanted.",
)

_LOOK_SECONDS, _QUERY_SECONDS, _WRITE_SECONDS = (20.0, 40.0), (60.0, 120.0), (20.0, 40.0)


class Mind(msgspec.Struct, frozen=True):
    """An analyst's state of mind.

    Attributes:
        view: their view.
        profile: their knowledge, and their wishes when they last thought about them.
        wants: their current wishes.
        reading: everything they have taken in by now.
        before: everything they had taken in at their last act.
        said: their own messages, the request first.
    """

    view: View
    profile: Profile
    wants: Wants
    reading: Reading
    before: Reading
    said: tuple[str, ...]


@final
class DataPerson:
    """Decides what an analyst wants, sees and says; one for each session."""

    def __init__(self) -> None:
        self._reading: Reading | None = None
        self._messages: MessageReader | None = None
        self._taken = 0
        self._profiles: dict[tuple[str, ...], Profile] = {}

    def see(self, view: View, profile: JSON) -> Mind:
        """Reads what is new, and sees what it makes them want."""
        written = sentences_of(profile)
        if written not in self._profiles:
            self._profiles[written] = read_profile(profile)
        known = self._profiles[written]
        if self._reading is None:
            self._reading = Reading(known.names, known.attention, known.stamina)
            self._messages = MessageReader(known.names)
        for record in view.records[self._taken :]:
            self._reading.feed(record)
        self._taken = len(view.records)
        now = self._reading.copy()
        now.catch_up()
        first = known.wants.topics
        opened = opened_by(first, known.opens, known.pivot, now.believed)
        goal = opened.goal if opened.goal == known.pivot else known.wants.goal
        wants = Wants(opened.topics, goal)
        return Mind(view, known, wants, now, self._reading, tuple(own_messages(view)))

    def wrong(self, state: Mind, output: str) -> float:
        """Assumptions in a report that they know to be wrong."""
        reader = ReportReader(state.profile.names)
        stated = (reader.read(line) for line in lines_of(output))
        return sum(
            1.0
            for one in stated
            if isinstance(one, Assumed) and one.holds != state.profile.rulings[one.ruling]
        )

    def comment(self, state: Mind, persona: Persona, words: Random) -> str | None:
        """Names a wrong assumption, a puzzling claim, or another question; or None."""
        if unannounced(state.view):
            return HUMAN.say("added", words)
        odd = words.random() < persona.ambiguous
        if state.view.snapshot is None:
            return self._hint(state, words, odd=odd)
        for ruling in self._objections(state):
            return self._rule(state, ruling, words, odd=odd)
        for topic in state.reading.puzzling:
            if topic in state.wants.topics and _times(state, _charts(topic)) < _ASKS:
                return HUMAN.say("chart", words, about=topic.about)
        if len(state.reading.unread) >= _TOO_MUCH and not _times(state, HUMAN.variants("long")):
            return HUMAN.say("long", words)
        if state.wants.goal == state.profile.pivot and _lacks_advice(state):
            return say_advice_wish(state.wants.goal, words)
        learned = state.reading.believed != state.before.believed
        for topic in _open(state):
            subject = state.profile.names.subject
            return say_topic(topic, subject, words, odd=odd, learned=learned)
        if _lacks_advice(state):
            return say_advice_wish(state.wants.goal, words)
        return None

    def answer(self, state: Mind, question: str, persona: Persona, words: Random) -> str:
        """Answers the question, as far as they understand it; otherwise says what they want to know."""
        odd = words.random() < persona.ambiguous
        rulings = asked_rulings(question)
        if rulings and words.random() < persona.mishears:
            other = next(r for r in RULINGS if r not in rulings)
            said = self._rule(state, other, words, odd=odd)
            return mistaken(_RULED[other], said, words)
        if rulings:
            return self._rule(state, rulings[0], words, odd=odd)
        offer = self._messages.proposed(question) if self._messages else None
        if offer is not None and offer in _open(state):
            return HUMAN.say("yes", words)
        clear = persona if not asks_to_rephrase(question) else _clearly(persona)
        comment = self.comment(state, clear, words)
        return comment or HUMAN.say("done" if offer is None else "no", words)

    def work(self, state: Mind, persona: Persona, words: Random) -> Decision | None:
        """Looks up topics not understood, or asked about in vain, if they act at all."""
        if not persona.acts or state.view.snapshot is None:
            return None
        if is_working(state.view) or awaits_reaction(state.view):
            return None  # the agent may be about to answer
        if state.reading.unread:
            return None  # it may be in the report
        if trait(state.view, "tries").random() >= _TRIES_THEMSELVES:
            return None
        last = state.view.messages[-1]
        lost = last.role == "agent" and asks_to_rephrase(last.text)
        for topic in state.wants.topics:
            asked = _times(state, wordings_of(topic, state.profile.names.subject))
            if topic not in state.reading.believed and asked >= (1 if lost else _ASKS):
                return self._find_out(state, topic, words)
        return None

    def content(self, state: Mind, persona: Persona) -> bool | str:
        """Whether they believe to know enough; or why they leave: they are tired."""
        if state.reading.left <= _TIRED:
            return "tired: they can take in no more"
        wanted = state.wants.topics
        open_ = sum(1 for topic in wanted if topic not in state.reading.believed)
        if persona.contentment < 1.0:
            return open_ <= (1.0 - persona.contentment) * len(wanted)
        if any(True for _ in self._objections(state)) or _lacks_advice(state):
            return False
        if len(_open(state)) > persona.untold:
            return False
        lost = [topic for topic in wanted if topic not in state.reading.believed]
        if len(lost) <= persona.untold:
            return True
        about = spelled([_NAMES[one.kind].format(about=one.about) for one in lost])
        return f"leaves it at that, without knowing about {about}"

    def rate(self, state: Mind, view: View) -> Felt | None:
        """Rates what they learned since their last act; otherwise the length, a question or a change."""
        gained = [t for t in state.reading.believed if t not in state.before.believed]
        known = [topic for topic in state.wants.topics if topic in gained]
        if known:
            one = felt(len(known) / len(state.wants.topics), *_on(_LEARNED, known[0]))
            done = not _open(state) and not _lacks_advice(state)
            return Felt(min(5.0, one.value + done), one.words)
        if len(state.reading.unread) >= _TOO_MUCH:
            return felt(0.0, *_FLOODED)
        last = view.messages[-1].text if view.messages else ""
        rulings = asked_rulings(last)
        if rulings and view.snapshot is None:
            return questioned(_COUNTING)
        if rulings:
            return felt(QUESTION, *_RIGHTLY_ASKED)
        if state.reading.advice != state.before.advice:
            return felt(QUESTION, *_ADVISED)
        if state.reading.believed != state.before.believed:
            return felt(QUESTION, *_CORRECTED)
        told = view.snapshot is not None and bool(read_rulings(state.said[-1]))
        if told and not asks_to_rephrase(last):
            return felt(QUESTION, *_HEEDED)
        asked = self._messages is not None and self._messages.read(state.said[-1]).topics
        open_ = _open(state)
        words = _on(_NO_WISER, open_[0]) if open_ else _NOTHING_NEW
        return felt(-0.03 if asked else 0.0, *words)

    def change(self, state: Mind) -> ChangeProfile | None:
        """New findings raise further questions, and may lead to another decision."""
        if state.wants == state.profile.wants:
            return None
        profile = msgspec.structs.replace(state.profile, wants=state.wants)
        fresh = [t for t in state.wants.topics if t not in state.profile.wants.topics]
        reason = "understood something that raises further questions"
        if not fresh:
            reason = "understood something that another decision rests on"
        return ChangeProfile(write_profile(profile), reason)

    def alone(self, state: Mind, words: Random) -> Decision | None:
        """Looks things up one after the other, and writes them down, until they are tired."""
        if state.reading.left < OWN_ANALYSIS:
            return self._conclude(state, words)
        for topic in state.wants.topics:
            if topic not in state.reading.believed:
                return self._find_out(state, topic, words)
        return self._conclude(state, words)

    # --- what they say -------------------------------------------------------------------------------

    def _objections(self, state: Mind) -> Iterator[Ruling]:
        """Assumptions that they noticed and know to be wrong, and have not objected to in vain."""
        for ruling, holds in state.reading.assumed.items():
            said = sum(1 for text in state.said if ruling in read_rulings(text))
            if holds != state.profile.rulings[ruling] and said < _ASKS:
                yield ruling

    def _hint(self, state: Mind, words: Random, *, odd: bool) -> str | None:
        """Tells a ruling that differs from the default assumption."""
        unusual = [r for r in RULINGS if state.profile.rulings[r] != DEFAULTS[r]]
        return self._rule(state, words.choice(unusual), words, odd=odd) if unusual else None

    def _rule(self, state: Mind, ruling: Ruling, words: Random, *, odd: bool) -> str:
        return say_ruling(ruling, words, holds=state.profile.rulings[ruling], odd=odd)

    # --- what they do themselves ---------------------------------------------------------------------

    def _find_out(self, state: Mind, topic: Topic, words: Random) -> Decision | None:
        """Looks at the table first, if they care; selects what answers a topic; then writes that into the report."""
        sheet, found = sheet_of(topic.kind), outcomes(state.view)
        cares, look = _cares(state.view, sheet), look_at(sheet)
        if cares and not any(one.arguments.get("sql") == look for one in found):
            return Decision((Act("Query", {"sql": look}),), words.uniform(*_LOOK_SECONDS))
        for careful in (True,) if cares else (False, True):
            sql = query_for(sheet, state.profile.rulings, careful=careful)
            done = [a for a in found if a.arguments.get("sql") == sql]
            if not done:
                return Decision((Act("Query", {"sql": sql}),), words.uniform(*_QUERY_SECONDS))
            resolved = done[-1].resolved
            claim = _claim(resolved.observation if resolved else None, sheet, topic, state)
            lines = lines_of(state.view.snapshot_text)
            if claim is None or say_claim(claim) in lines:
                return None
            if careful or not _is_absurd(claim):
                lines.append(say_claim(claim))
                return Decision((Submit("\n".join(lines)),), words.uniform(*_WRITE_SECONDS))
        return None

    def _conclude(self, state: Mind, words: Random) -> Decision | None:
        """Writes down a recommendation based on their beliefs, once."""
        claim = state.reading.believed.get(state.wants.goal)
        if claim is None or state.reading.advice == advice_on(claim):
            return None
        lines = [*lines_of(state.view.snapshot_text), say_advice(advice_on(claim))]
        return Decision((Submit("\n".join(lines)),), words.uniform(*_WRITE_SECONDS))


def _open(state: Mind) -> list[Topic]:
    """Topics they want to know, have no belief about, and have not asked about in vain."""
    subject = state.profile.names.subject
    return [
        topic
        for topic in state.wants.topics
        if topic not in state.reading.believed
        and _times(state, wordings_of(topic, subject)) < _ASKS
    ]


def _lacks_advice(state: Mind) -> bool:
    """Whether they miss a recommendation on what they have to decide, and have not given up on it."""
    advice, goal = state.reading.advice, state.wants.goal
    if advice is not None and advice.topic == goal:
        return False
    return _times(state, HUMAN.variants(goal.kind, about=goal.about)) < _ASKS


def _on(texts: tuple[str, ...], topic: Topic) -> tuple[str, ...]:
    """The texts about a topic, in the analyst's words."""
    about = _NAMES[topic.kind].format(about=topic.about)
    return tuple(text.format(about=about) for text in texts)


def _times(state: Mind, wordings: tuple[str, ...]) -> int:
    """How often they have said a thing after the request, in any of these wordings."""
    endings = tuple(text.lower() for text in wordings)
    return sum(1 for said in state.said[1:] if plain(said).lower().endswith(endings))


def _charts(topic: Topic) -> tuple[str, ...]:
    return HUMAN.variants("chart", about=topic.about)


def _clearly(persona: Persona) -> Persona:
    return msgspec.structs.replace(persona, ambiguous=0.0)


def _cares(view: View, sheet: Sheet) -> bool:
    return trait(view, f"care/{sheet}").random() < _CARE


def _is_absurd(claim: Claim) -> bool:
    """Whether a claim is implausible: a price more than twice that of other regions."""
    return claim.topic.kind == "price" and (claim.value or 0.0) > 100.0


def _claim(found: JSON, sheet: Sheet, topic: Topic, state: Mind) -> Claim | None:
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list | tuple):
        return None
    table = [row for row in rows if isinstance(row, list | tuple)]
    within = state.profile.rulings["within"]
    return claims_of(sheet, table, state.profile.names, within=within).get(topic)
