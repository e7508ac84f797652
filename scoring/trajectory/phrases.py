"""Phrases in what people write: rules that recognise a vague ask, a complaint or a question.

Rules over English phrases: free, deterministic, offline, and wrong at times. Each place that uses
one takes any function of the same shape instead, e.g. one that looks up what a model said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import filterfalse, product
from operator import itemgetter
from typing import final

__all__ = (
    "asks_to_clarify",
    "asks_to_confirm",
    "is_answer",
    "is_complaint",
    "is_halt",
    "is_praise",
    "is_vague",
    "repeats",
    "takes_initiative",
)


@final
class _Phrases:
    """Finds phrases in texts of any case.

    Args:
        pattern: an expression in lower case.
        hints: strings of which each text that the expression finds something in holds one, in lower
            case; none if not known.

    Attributes:
        in_any_case: the expression, for texts of any case: what ``found`` answers, and slower.
    """

    def __init__(self, pattern: str, hints: Sequence[str] = ()) -> None:
        self.in_any_case = re.compile(pattern, re.IGNORECASE)
        self._in_lower_case = re.compile(pattern).search
        self._hints = tuple(hints)

    def found(self, text: str) -> bool:
        """Whether one of them stands in a text."""
        if not text.isascii():  # letters elsewhere have cases of their own
            return self.in_any_case.search(text) is not None
        text = text.lower()  # several times as fast as to compare in any case
        if self._hints:
            for hint in self._hints:
                if hint in text:
                    break
            else:
                return False
        return self._in_lower_case(text) is not None


def _any(*phrases: str, hints: Sequence[str] = ()) -> _Phrases:
    return _Phrases(rf"\b(?:{'|'.join(phrases)})\b", hints)


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
_HALT = _Phrases(
    r"(?:^|[.!?;,]\s*|\b(?:please|should|must|need to|just)\s+)"
    r"(?:stop|wait|hold on|hold off|pause|halt|cancel|abort|"
    r"don(?:'|’)?t (?:do|book|send|continue|go))\b",
    hints=("stop", "wait", "hold o", "pause", "halt", "cancel", "abort", "don"),
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
    hints=(
        *(
            "shall ",
            "should ",
            "may ",
            "can ",
            "could ",
            "do you ",
            "would you ",
            "is that ",
            "is this ",
        ),
        *("is it ", "are you ", "confirm", "does ", "ok"),
    ),
)
_CLARIFY = _any(
    r"what (?:do|did) you mean",
    r"what does (?:that|this|it|\S+) mean",
    r"what is (?:that|this) supposed to",
    r"(?:do not|don't|did not|didn't|cannot|can't|could not|couldn't) (?:\w+ )?(?:understand|follow|get (?:that|it|this))",
    r"not sure (?:i|what you) (?:understand|follow|mean)",
    r"(?:i am|i'm) (?:\w+ ){0,2}(?:confused|lost)",
    r"(?:can|could|would) you (?:please )?(?:explain|clarify|rephrase|say (?:that|it) (?:again|differently))",
    r"please (?:explain|clarify|rephrase)",
    r"(?:sorry|pardon|huh|come again|what)(?=\?)",
    r"which (?:one )?do you mean",
    r"makes? no sense to me",
    hints=(
        *("mean", "supposed", "understand", "follow", "get that", "get it", "get this", "confused"),
        *("lost", "explain", "clarify", "rephrase", "say that", "say it", "no sense"),
        *("sorry?", "pardon?", "huh?", "come again?", "what?"),
    ),
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
    # hands the decision back
    "up/leave/left to you",
    "that/it/this/all/everything/details to you",
    "your call/choice/hands/gut/decision/judgment/judgement",
    "your own/best judgment/judgement",
    "you decide/decided/choose/pick/prefer/know/want/like/think",
    "you can decide/choose/pick/do",
    "you see fit",
    "feel free",
    "pick/choose/take one/any/something/anything",
    "whatever",
    "whichever",
    "surprise me",
    "i trust you",
    "figure/sort/work it/this/that out",
    "sort/figure out",
    # does not know, or does not mind
    "anything/anywhere/anyone/either/any is/are/would/will/works fine/good/ok/okay/do/be",
    "anything/anywhere/anyone/either/any works",
    "any of them",
    "either one/way",
    "with/to any/anything/either/whatever",
    "anything you",
    "all is/are/the fine/good/ok/okay/same",
    "don't/dont/not know/mind/care/remember/recall",
    "don't/dont/not really/much know/mind/care/remember/recall",
    "can't/cannot/couldn't say/tell/remember/recall/put",
    "can't/cannot/couldn't really say/tell/remember/recall",
    "haven't thought/decided",
    "haven't really thought/decided",
    "no idea/preference/preferences/opinion/difference",
    "no strong opinion/preference/preferences/feelings",
    "not/isn't/don't/doesn't matter",
    "hard to say/tell",
    "who knows",
    "i'm easy/flexible/open",
    "i am easy/flexible/open",
    # is not content, and does not say with what
    "not/isn't/aren't/wasn't right/sure/happy/satisfied/convinced/great/it/there/what/good/ideal",
    "not/isn't/wasn't quite/really/fully/entirely/all/exactly/so",
    "not bad",
    "doesn't/don't/won't/didn't/does/do/not work/feel/do/like",
    "something/somehow/something's",
    "could/can/should/must be better/improved/nicer",
    "do/did better",
    "much/a/any/something better",
    "expected/hoped more/better/something/for",
    "hoping for",
    "had in mind",
    "off here",
    "lacking/missing something",
    "what's wrong",
    "needs/need some/more/a work",
    "needs/need some/a more/bit/little",
    # asks for more, and does not say of what
    "make/get it/this/that better/nicer/good/work/right",
    "improve/fix/redo/change/adjust/revise/refine/rework/polish/tweak it/this/that",
    "and/please improve/redo/adjust/revise/refine/rework/polish/tweak",
    "try/do again/better",
    "try/do it/that/this again/better",
    "another look/try/go/shot/pass/version/attempt/round",
    "once/one more",
    "something else/different/better/nice/good/about",
    "do your best",
    "do what",
    "what you can",
    "keep going/at",
    "go on/ahead",
    "carry/move on",
    "continue",
    "do it",
)
_GENERAL = frozenset(
    """
    a about actually afraid again ah all almost also alright am an and any anything anyway are as at
    be been being best better bit but by can could did do does doing done either else even ever
    everything exactly few find fine for from fully get give given go going good got great guess had
    has have having hello here hey hi hm hmm honest honestly how however i i'd i'll i'm i've if in
    into is it it's its itself just kind know let let's like little look lot made make makes maybe me mean
    meh might mind more most much must my myself need needs nice no nope nor not nothing now of off oh
    ok okay on once one ones only or other our ourselves out over perhaps please point prefer pretty
    probably put quite rather really right said same say see seem seems should since so some somehow
    someone something somewhat sorry sort still such suggest sure take than thank thanks that that'd
    that's the their them then there there's these they thing things think this those though thought
    thoughts through to too try us version very want was way we we'd we'll we're well were what what's
    whatever when where whether which while who why will wish with without won't work works worse would
    wrong yeah yes yet you you'd you'll you're you've your yours yourself expert finger details
    double-check double check hope hoping somewhere anybody anyone somebody everyone time day today
    moment entirely completely totally
    """.split()
)
"""Words that say nothing of what a message is about."""
_VAGUE_WORDS = 20
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_TEXT = itemgetter(0)  # of a match
_LONGEST_VAGUE = 120


def _by_first_word(phrases: tuple[str, ...]) -> dict[str, list[list[str]]]:
    """What may follow a word so that the two make a phrase."""
    index: dict[str, list[list[str]]] = {}
    for phrase in phrases:
        for first, *rest in product(*(slot.split("/") for slot in phrase.split())):
            index.setdefault(first, []).append(rest)
    return index


_VAGUE_INDEX = _by_first_word(_VAGUE)
_UNSPECIFIC = _GENERAL.union(*(slot.split("/") for phrase in _VAGUE for slot in phrase.split()))


def is_vague(text: str) -> bool:
    """Whether somebody defers the work: asks vaguely, or hands back the decision.

    People who find an answer too hard to judge move the conversation on with an unspecific ask
    (paper, section 3). Vague is a message of at most 20 words and 120 characters that says ``up to
    you``, ``I don't mind``, ``make it better``, ``not quite right`` or the like, and no word of what
    it is about. A test holds precision and recall on labelled texts.
    """
    if len(text) > _LONGEST_VAGUE:
        return False
    text = text.lower().replace("’", "'")
    for plain in text.split():
        if plain not in _UNSPECIFIC and plain.isalnum():
            return False  # most texts: this is quicker than to look for words
    words: list[str] = []
    for found in _WORD.finditer(text):
        if found[0] not in _UNSPECIFIC:
            return False
        words.append(found[0])
    if len(words) > _VAGUE_WORDS:
        return False
    for at, word in enumerate(words, start=1):
        for rest in _VAGUE_INDEX.get(word, ()):
            if words[at : at + len(rest)] == rest:
                return True
    return False


def is_complaint(text: str) -> bool:
    """Whether somebody says that something is wrong, missing, or not as asked."""
    return _COMPLAINT.found(text)


def is_praise(text: str) -> bool:
    """Whether somebody says that something is good, or thanks for it."""
    return _PRAISE.found(text)


def is_halt(text: str) -> bool:
    """Whether somebody asks another to stop what it is doing, which is more than saying no."""
    return _HALT.found(text)


def asks_to_clarify(text: str) -> bool:
    """Whether somebody asks what another meant, or says that they did not follow: a repair, as in
    Dingemanse et al. (2015).
    """
    return _CLARIFY.found(text.replace("’", "'"))


def asks_to_confirm(text: str) -> bool:
    """Whether somebody asks for a confirmation: a question to be answered with yes or no."""
    return "?" in text and _CONFIRM.found(text)


def is_answer(text: str) -> bool:
    """Whether a message answers a question for confirmation, with yes or with no."""
    return _ANSWER.search(text) is not None


def takes_initiative(text: str) -> bool:
    """Whether an utterance takes the initiative: it proposes what to do, says something concrete
    to go by, or asks a concrete question.

    The distinction of task and dialogue initiative follows Chu-Carroll and Brown (1997) as
    Collaborative Gym uses it. What merely acknowledges, greets, or asks back takes none.
    """
    text = text.lower().replace("’", "'")
    for plain in text.split():
        if plain not in _PASSIVE and plain.isalnum():
            return True  # most texts: this is quicker than to look for words
    words = _WORD.finditer(text)
    return any(filterfalse(_PASSIVE.__contains__, map(_TEXT, words)))


def repeats(before: str, after: str) -> bool:
    """Whether a message says again what the one before it said.

    More than half of its words, of those with more than three letters, stand in the message before.
    """
    earlier = {word.strip(".,;:!?\"'").lower() for word in before.split()}
    words = [word.strip(".,;:!?\"'").lower() for word in after.split()]
    words = [word for word in words if len(word) > 3]
    return len(words) > 1 and sum(word in earlier for word in words) * 2 > len(words)
