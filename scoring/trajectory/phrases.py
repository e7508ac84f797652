"""Phrases in what people write: rules that recognise a vague ask, a complaint or a question.

Rules over English phrases: free, deterministic, offline, and wrong at times. Each place that uses
one takes any function of the same shape instead, e.g. one that looks up what a model said.
"""

from __future__ import annotations

import re
from itertools import product

__all__ = (
    "asks_to_confirm",
    "is_answer",
    "is_complaint",
    "is_halt",
    "is_praise",
    "is_vague",
    "takes_initiative",
)


def _any(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


_COMPLAINT = _any(
    r"wrong",
    r"incorrect",
    r"mistakes?",
    r"not (?:what|right|correct|ok(?:ay)?|good|acceptable|helpful|working)",
    r"(?:does|do|did|is|are|was|were|has|have|wo|ca|would|could)n(?:'|’)?t",
    r"(?:does|do|did|is|are|was|were|has|have|will|can) not",
    r"cannot",
    r"still",
    r"(?:i )?already (?:said|told|mentioned|asked)",
    r"as i (?:said|told|mentioned)",
    r"i (?:said|asked|told you)",
    r"missing",
    r"forg[eo]t(?:ten)?",
    r"ignor(?:e|ed|ing)",
    r"instead",
    r"too (?:expensive|many|much|few|long|far|early|late)",
    r"over (?:the )?budget",
    r"disappoint(?:ed|ing)",
    r"frustrat(?:ed|ing)",
    r"useless",
    r"undo",
    r"revert",
)
_PRAISE = _any(
    r"thank(?:s| you)",
    r"great",
    r"perfect(?:ly)?",
    r"excellent",
    r"wonderful",
    r"awesome",
    r"love(?:ly| it| this| that)",
    r"nice(?:ly)?",
    r"looks? (?:good|right|fine)",
    r"sounds? (?:good|great|right|fine)",
    r"well done",
    r"good (?:job|work|plan|idea|choice|start)",
    r"exactly",
    r"much better",
    r"that works",
    r"(?:i(?:'|’)?m|i am) (?:happy|satisfied)",
)
_HALT = re.compile(
    r"(?:^|[.!?;,]\s*|\b(?:please|should|must|need to|just)\s+)"
    r"(?:stop|wait|hold on|hold off|pause|halt|cancel|abort|"
    r"don(?:'|’)?t (?:do|book|send|continue|go))\b",
    re.IGNORECASE,
)
_CONFIRM = _any(
    r"(?:shall|should|may|can|could) (?:i|we)",
    r"do you want me to",
    r"(?:would|do) you (?:like|mind|agree|approve|prefer)",
    r"is (?:that|this|it) (?:ok(?:ay)?|fine|right|correct|acceptable|all right|alright)",
    r"are you (?:ok(?:ay)?|fine|happy) with",
    r"(?:please |can you |could you )?confirm",
    r"does (?:that|this|it) (?:work|look|sound|suit)",
    r"ok(?:ay)? (?:with you|if i)",
)
_ANSWER = re.compile(
    r"^\W*(?:yes|yeah|yep|yup|no|nope|nah|sure|ok(?:ay)?|fine|agreed|correct|right|go ahead|"
    r"please do|sounds good|of course|absolutely|definitely|not (?:yet|now|really)|"
    r"(?:i )?(?:do not|don(?:'|’)?t) )",
    re.IGNORECASE,
)
_PASSIVE = frozenset(
    """
    ok okay yes yeah yep no nope sure right fine great perfect thank thanks you very so much alright
    all got it agreed cool nice good understood hello hi hey please sorry pardon i see
    any suggestion suggestions idea ideas thought thoughts what do mean suggest
    can could clarify repeat that this
    """.split()
)
"""Words of utterances that acknowledge, greet, or ask back, and no more."""

# A slash parts alternatives. Phrases are looked up word by word, since this runs on every message
# of a human's, where an expression with so many alternatives would be slow.
_VAGUE = (
    "up to you",
    "your call/choice",
    "you decide/choose/pick",
    "you can decide/choose/pick",
    "whatever",
    "anything/anywhere/anyone/either is/are/would/will/works fine/good/ok/okay/do/be",
    "anything/anywhere/anyone/either works",
    "all is/are/the fine/good/ok/okay/same",
    "i don't/dont know/mind/care",
    "i don't/dont really know/mind/care",
    "i do not know/mind/care",
    "no idea/preference/preferences",
    "not sure",
    "not really sure",
    "surprise me",
    "your judgment/judgement",
    "your best judgment/judgement",
    "i trust you",
    "make/get it/this/that better/nicer/good/work/right",
    "improve/fix/redo/change it/this/that",
    "try/do again/better",
    "try/do it/that/this again/better",
    "try/do something else",
    "something else/different/better/nice/good",
    "do your best",
    "keep going",
    "go on/ahead",
    "carry/move on",
    "continue",
    "do it",
)
_VAGUE_WORDS = 12
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_LONGEST_VAGUE = 64


def _by_first_word(phrases: tuple[str, ...]) -> dict[str, list[list[str]]]:
    """What may follow a word so that the two make a phrase."""
    index: dict[str, list[list[str]]] = {}
    for phrase in phrases:
        for first, *rest in product(*(slot.split("/") for slot in phrase.split())):
            index.setdefault(first, []).append(rest)
    return index


_VAGUE_INDEX = _by_first_word(_VAGUE)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


def is_vague(text: str) -> bool:
    """Whether somebody defers the work: asks vaguely, or hands back the decision.

    People who find an answer too hard to judge move the conversation on with an unspecific ask
    (paper, section 3). Vague is a message of at most 12 words and 64 characters, without a figure,
    that says no more than ``up to you``, ``I don't mind``, ``make it better`` or the like.
    """
    if len(text) > _LONGEST_VAGUE:
        return False
    words = _words(text)
    if len(words) > _VAGUE_WORDS or _VAGUE_INDEX.keys().isdisjoint(words):
        return False
    for at, word in enumerate(words, start=1):
        for rest in _VAGUE_INDEX.get(word, ()):
            if words[at : at + len(rest)] == rest:
                return not any(char.isdigit() for char in text)
    return False


def is_complaint(text: str) -> bool:
    """Whether somebody says that something is wrong, missing, or not as asked."""
    return _COMPLAINT.search(text) is not None


def is_praise(text: str) -> bool:
    """Whether somebody says that something is good, or thanks for it."""
    return _PRAISE.search(text) is not None


def is_halt(text: str) -> bool:
    """Whether somebody asks another to stop what it is doing, which is more than saying no."""
    return _HALT.search(text) is not None


def asks_to_confirm(text: str) -> bool:
    """Whether somebody asks for a confirmation: a question to be answered with yes or no."""
    return "?" in text and _CONFIRM.search(text) is not None


def is_answer(text: str) -> bool:
    """Whether a message answers a question for confirmation, with yes or with no."""
    return _ANSWER.search(text) is not None


def takes_initiative(text: str) -> bool:
    """Whether an utterance takes the initiative: it proposes what to do, says something concrete
    to go by, or asks a concrete question.

    The distinction of task and dialogue initiative follows Chu-Carroll and Brown (1997) as
    Collaborative Gym uses it. What merely acknowledges, greets, or asks back takes none.
    """
    words = _WORD.finditer(text.lower().replace("’", "'"))
    return any(word[0] not in _PASSIVE for word in words)
