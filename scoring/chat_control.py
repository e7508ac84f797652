"""Advice for work without an output, such as support: answer, ask, confirm, or escalate.

The rules of ``control`` rest on an output, and a chat has none. ``ChatController`` reads the
trace of a session and advises the agent on its next move after each message of the human.

The rules, the first that applies:

1. *Escalate* if the human asks for a person, or accepts an offer to be handed over, or if
   ``ChatRules.tolerance`` messages in a row complain, correct or repeat.
2. *Answer* if the human is satisfied or says to stop asking. After that, ask nothing until the human
   brings up something new.
3. *Answer* if the human agrees to a proposal: carry it out.
4. If the human wants something changed (booked, cancelled, paid): *confirm* the details if the agent has
   looked anything up or the human names what is meant; otherwise *ask* for the details.
5. If the human answers a question: *ask* on if a change is still without details, and otherwise
   *answer*. After ``ChatRules.questions`` questions in a row, *answer* all the same.
6. *Ask* if the human speaks of something they own without naming it, or is vague.
7. *Answer* anything else.

``docs/labels.md`` says how often this agrees with a reader's advice on real support chats.
"""

from __future__ import annotations

import re
from typing import Final, final

import msgspec

from ..engine.errors import InvalidInput
from ..engine.events import MessageSent
from ..engine.records import TRACE, Record
from .trajectory.updates import ChatMove
from .turns import Annotator, Label, Turn, annotate, is_vague

__all__ = ("ChatAdvice", "ChatController", "ChatMove", "ChatRules")

_PERSON: Final = re.compile(
    r"\b(?:(?:speak|talk|transfer(?:red)?|connect(?:ed)?|escalate|put me through)\b.{0,40}"
    r"\b(?:human|person|someone|somebody|agent|representative|manager|supervisor|staff)"
    r"|(?:real|actual|live) (?:human|person|agent)|(?:want|need|like) an? (?:human|person)\b"
    r"|your (?:manager|supervisor))\b",
    re.IGNORECASE,
)
_NO_PERSON: Final = re.compile(
    r"\b(?:don'?t|do not|no need to|rather not)\b[^,.;!?]{0,30}\b(?:human|person|someone|somebody|agent|"
    r"representative|manager|supervisor|staff)\b",
    re.IGNORECASE,
)
_OFFER: Final = re.compile(
    r"\b(?:transfer|connect|hand|put|escalate)\b.{0,60}"
    r"\b(?:human|person|agent|representative|manager|supervisor|specialist|colleague)\b[^?]*\?",
    re.IGNORECASE,
)
_PROPOSAL: Final = re.compile(
    r"\b(?:confirm|proceed|go ahead|shall i|should i|would you like me to|do you want me to|"
    r"is (?:that|this) (?:ok(?:ay)?|correct|right))\b",
    re.IGNORECASE,
)
_CHANGE: Final = re.compile(
    r"\b(?:book|cancel|cancell?ing|chang(?:e|ing)|switch|modify|remove|delete|add|refund|upgrade|downgrade|update|"
    r"exchange|replace|return|buy|purchase|pay|transfer|rebook|reschedule|changes|"
    r"i'?ll (?:go with|take)|let'?s (?:go with|use|proceed|just)|"
    r"(?<!my )(?<!the )(?<!this )(?<!that )(?<!our )(?<!your )(?<!an )order)\b",
    re.IGNORECASE,
)
_INQUIRY: Final = re.compile(
    r"\b(?:do you have|are there|is there|is it possible|if possible|what|why|how|which|when|where|"
    r"wonder|look(?:ing)? for|find|check|know)\b[^.!]*\??|can you help with that",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    r"#\d{2,}|\b(?:order|booking|ticket|case|invoice|reservation) (?:number |no\.? )?\d+\b|"
    r"\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9_]{5,}\b|\b\d{4,}\b"
)
_DATE: Final = re.compile(r"\d{1,2}(?:st|nd|rd|th)|\d{1,2}:\d\d|\d{1,2}\s?[ap]m", re.IGNORECASE)
_OWN: Final = re.compile(r"\b(?:my|our|i (?:have|had|booked|ordered|bought|paid))\b", re.IGNORECASE)
_CHOICE: Final = re.compile(
    r"\bi'?(?:ll| will) (?:go with|take)\b|\blet'?s (?:go with|use|proceed)\b|"
    r"\b(?:could|can) you (?:please )?(?:book|cancel|change|remove|add|order|refund)\b",
    re.IGNORECASE,
)
_GENERAL: Final = re.compile(
    r"\b(?:how (?:do|can|should|to)|what (?:is|are) (?:the|your))\b", re.IGNORECASE
)
_YES: Final = re.compile(
    r"\W*(?:yes|yeah|yep|sure|ok(?:ay)?|alright|please do|go ahead|i confirm|correct)\b",
    re.IGNORECASE,
)
_SHORT: Final = 16  # words: a message that gives one detail
_CHOICES: Final = 3  # words
_DISPLEASED: Final[frozenset[Label]] = frozenset({"complaint", "correction", "repeat"})


class ChatRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of the rules; see the module for the rules themselves.

    Attributes:
        tolerance: messages in a row that complain, correct or repeat, after which to escalate.
        questions: questions of the agent in a row, after which to answer with what is known.

    Raises:
        InvalidInput: a number below 1.
    """

    tolerance: int = 3
    questions: int = 3

    def __post_init__(self) -> None:
        if min(self.tolerance, self.questions) < 1:
            raise InvalidInput(f"a number in the rules of chats is below 1: {self}")


class ChatAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's next move.

    Attributes:
        session: session id.
        version: trace version of the human's message that it follows.
        move: what to do.
        why: the rule that applied, in words.
    """

    session: str
    version: int
    move: ChatMove
    why: str


@final
class ChatController:
    """Advises the agent of one chat on its next move.

    For example::

        controller = duolog.ChatController("conversation-42")
        async with log.subscribe(session="conversation-42") as records:
            async for record in records:
                advice = controller.feed(record)
                if advice is not None:
                    print(advice.move, "because", advice.why)

    Args:
        session: session id.
        rules: parameters of the rules.
        annotator: labels the messages of the human; by default by rules.

    Attributes:
        session: session id.
        advice: the current advice; None before the human's first message, and for a message that the
            annotator cannot read.
        quiet: whether the human wants to be asked nothing, as far as is known.
    """

    def __init__(
        self, session: str, rules: ChatRules | None = None, *, annotator: Annotator | None = None
    ) -> None:
        self.session = session
        self.advice: ChatAdvice | None = None
        self._rules = rules or ChatRules()
        self._annotate: Annotator = annotator or annotate
        self._before = self._said = ""
        self._acted = False
        self._wants_change = self._detailed = False
        self._displeased = 0
        self._asked = 0
        self.quiet = False

    def feed(self, record: Record) -> ChatAdvice | None:
        """Takes the next record of the session; returns the advice that follows a human's message.

        Raises:
            InvalidInput: the record is of another session.
        """
        if record.session != self.session:
            raise InvalidInput(
                f"a record of session {record.session!r} was given to the controller of "
                f"{self.session!r}"
            )
        if record.stream != TRACE:
            return None
        self._acted = self._acted or (record.role == "agent" and record.kind == "ActionTaken")
        event = record.event
        if not isinstance(event, MessageSent):
            return None
        if record.role == "agent":
            self._before = event.text
            self._asked = self._asked + 1 if "?" in event.text else 0
            return None
        if record.role != "human":
            return None
        found = self._choose(event.text)
        self._said = event.text
        self.advice = None
        if found is not None:
            move, why = found
            self.advice = ChatAdvice(
                session=self.session, version=record.version, move=move, why=why
            )
        return self.advice

    def _choose(self, text: str) -> tuple[ChatMove, str] | None:
        labels = self._annotate(Turn(text=text, before=self._before, said=self._said))
        if labels is None:
            return None
        self._displeased = self._displeased + 1 if labels & _DISPLEASED else 0
        agrees = "confirm" in labels or _YES.match(text) is not None
        declines = "deny" in labels and _OFFER.search(self._before) is not None
        if _PERSON.search(text) and not (declines or _NO_PERSON.search(text)):
            self.quiet = True
            return "escalate", "the human asks for a person"
        if agrees and _OFFER.search(self._before):
            self.quiet = True
            return "escalate", "the human accepts to be handed over"
        if self._displeased >= self._rules.tolerance:
            return "escalate", f"{self._displeased} messages in a row say that it goes wrong"
        return self._settled(text, labels, agrees=agrees) or self._request(text, labels)

    def _settled(
        self, text: str, labels: frozenset[Label], *, agrees: bool
    ) -> tuple[ChatMove, str] | None:
        """The move if nothing is to be asked: the human is satisfied, has had enough, or agrees."""
        new = _wants_change(text) or text.rstrip().endswith("?")
        if "halt" in labels:
            self.quiet = True
            return "answer", "the human wants to be asked no more"
        if labels & {"thanks", "praise"} and not new and not agrees:
            self.quiet = True
            return "answer", "the human is satisfied"
        if agrees and _PROPOSAL.search(self._before) and (not new or not _INQUIRY.search(text)):
            self._wants_change = False
            return "answer", "the human agrees to what was proposed"
        if self.quiet and not new:
            return "answer", "the human has brought up nothing new"
        self.quiet = False
        return None

    def _request(self, text: str, labels: frozenset[Label]) -> tuple[ChatMove, str]:
        named = _is_named(text)
        inquires = _INQUIRY.search(text) is not None and _CHOICE.search(text) is None
        if _wants_change(text) and not (inquires and self._before):
            self._wants_change = True
            if self._acted or (named and self._before):
                return "confirm", "the human wants something changed, and it can be said what"
            return (
                ("answer", "the human names what to change")
                if named
                else (
                    "ask",
                    "the human wants something changed, and details are missing",
                )
            )
        if self._asked >= self._rules.questions:
            return "answer", f"{self._asked} questions were asked in a row"
        short = len(text.split()) < _SHORT
        if self._before and self._wants_change and not self._acted and short and not inquires:
            return "ask", "the change that the human wants still lacks details"
        own = _OWN.search(text) is not None and _GENERAL.search(text) is None
        if not self._before and own and not named:
            return "ask", "the human speaks of a matter of their own and does not name it"
        if is_vague(text) and "asks" not in labels:
            return "ask", "the human does not say what is wanted"
        return "answer", "the human can be answered with what is known or can be looked up"


def _wants_change(text: str) -> bool:
    """Whether a text asks for a change; a few words alone are an answer to a list of choices."""
    return _CHANGE.search(text) is not None and len(text.split()) > _CHOICES


def _is_named(text: str) -> bool:
    """Whether a text names something by a number or code, other than a date or a time."""
    return _NAMED.search(_DATE.sub("", text)) is not None
