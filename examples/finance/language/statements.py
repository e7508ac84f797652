"""Clients' statements of their wishes, in their own words, and how to read them.

A wish is said plainly, or so that it can be read in more than one way; there are also ways of saying
it that the reader here does not follow. Agents and clients know of each other only what is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from random import Random
from typing import Final

import msgspec

from ....engine.text import NUMBER_WORDS
from ....tasks.phrases import Patterns, Phrases, counted
from ..world.household import TOPICS, Topic

__all__ = (
    "AMBIGUOUS",
    "PLAIN",
    "Fact",
    "is_accepted",
    "read_answer",
    "read_facts",
    "say_accepted",
    "say_fact",
    "say_vaguely",
)

NUMBER: Final = rf"(?:\d{{1,9}}|{'|'.join(NUMBER_WORDS)})"
"""A small number, in digits or as a word."""

MONEY: Final = r"(?:\$\s?)?(?<![\d,])\d[\d,]{0,14}(?:\.\d{1,9})?(?:\s?(?:k\b|thousand\b|grand\b))?"
"""A sum of money."""

_MONTHS: Final = {
    "half a year": 6,
    "a quarter of a year": 3,
    "three quarters of a year": 9,
    "a whole year": 12,
    "a year": 12,
}
MONTHS: Final = rf"(?:{'|'.join(sorted(_MONTHS, key=len, reverse=True))}|{NUMBER} months?)"
"""A number of months."""

_SHARES: Final = {
    "a tenth": 10,
    "a fifth": 20,
    "a quarter": 25,
    "a third": 33,
    "half": 50,
    "three quarters": 75,
    "all": 100,
    "the whole": 100,
}
SHARE: Final = rf"(?:\d{{1,9}}(?:\.\d{{1,9}})? ?(?:%|per ?cent)|{'|'.join(sorted(_SHARES, key=len, reverse=True))})"
"""A share of something."""


def number_of(text: str) -> int:
    """The value of a match of `NUMBER`."""
    low = text.lower().strip()
    return NUMBER_WORDS[low] if low in NUMBER_WORDS else int(low)


def money_in(text: str) -> int:
    """The value of a match of `MONEY`."""
    low = text.lower().strip(" $")
    figures = re.match(r"[\d,]+(?:\.\d+)?", low)
    value = float(figures[0].replace(",", "")) if figures else 0.0
    return round(value * (1000 if re.search(r"k$|thousand$|grand$", low) else 1))


def months_in(text: str) -> int:
    """The value of a match of `MONTHS`."""
    low = text.lower()
    return _MONTHS[low] if low in _MONTHS else number_of(low.split()[0])


def share_in(text: str) -> int:
    """The value of a match of `SHARE`, in per cent."""
    low = text.lower()
    if low in _SHARES:
        return _SHARES[low]
    found = re.match(r"\d+(?:\.\d+)?", low)
    return round(float(found[0])) if found else 0


# --- what clients say of their wishes, in their own words, and how it is read ---------------------


class Fact(msgspec.Struct, frozen=True):
    """Something that was said of a wish.

    Attributes:
        topic: its topic.
        value: as in `Wishes`; 0 for nothing of that.
        sure: whether it was said plainly; else the value is the reader's guess.
    """

    topic: Topic
    value: int
    sure: bool = True


PLAIN: Final = Phrases(
    {
        "loss": (
            "losing more than {n}% in a bad year would be too much for me.",
            "a bad year may cost us {n} percent of what is invested, not more.",
            "I can live with a loss of {n}% in a bad year.",
            "if we lost over {n} percent in one year I could not sleep.",
            "the most that I want to lose in a bad year is {n}%.",
            "please no plan that can lose more than {n}% in a year.",
            "I get nervous when we lose over {n}% in one year.",
            "a loss of {n}% in a bad year is my limit.",
            "I'd sell everything if the account fell by more than {n} in a hundred.",
        ),
        "cushion": (
            "we want {months} of spending at hand.",
            "please keep enough in the bank for {months}.",
            "we should be able to live for {months} without an income.",
            "the emergency fund should last for {months}.",
            "I'd feel better with a reserve of {months}.",
            "I want a reserve that lasts {months}.",
            "the bank account should hold {months} of spending.",
            "put {months} of spending aside for us, please.",
        ),
        "age": (
            "I'd like to stop working at {n}.",
            "I hope to retire when I am {n}.",
            "work should be over for me by {n}.",
            "I want to retire at {n}.",
            "the plan is that I retire at {n}.",
            "I'd be glad to retire by {n}.",
            "at the latest I want to stop working by {n}.",
            "my plan is to be out of the office once I turn {n}.",
        ),
        "income": (
            "in retirement we'd need {money} a month.",
            "we'd like to have {money} a month to live on when we are retired.",
            "as pensioners {money} a month would do for us.",
            "once I've stopped working, {money} a month should come in.",
            "we'd need {money} a month when we have retired.",
            "when we retire, {money} a month should be there.",
            "{money} a month should be enough for us as pensioners.",
        ),
        "study": (
            "we want to pay {share} of the child's studies.",
            "we'd like to cover {share} of university for the little one.",
            "{share} of the cost of college should come from us.",
            "when our child studies, we mean to pay {share} of it.",
            "I would pay {share} of university for our child.",
            "{share} of the child's studies is our share.",
            "we mean to take over {share} of college.",
        ),
        "project": (
            "we need {money} for {project} within two years.",
            "there is {project} coming up next year, for {money}.",
            "please set aside {money} for {project}.",
            "{project} will cost us {money} in the next two years.",
            "there is {project} to think of: we need {money} for that in two years.",
            "we will need {money} for {project} before long.",
            "{project} is coming up, for {money} or so.",
        ),
        "support": (
            "I send my mother {money} a month.",
            "my mother gets {money} from me every month.",
            "we support my mother with {money} a month.",
            "{money} a month goes to my mother, that's on no form.",
            "my mother depends on {money} a month from me.",
            "each month {money} goes to my mother.",
            "I pay {money} a month for my mother.",
        ),
        "cover": (
            "if I die the family should have {years} of my salary.",
            "my life should be insured for {years} of salary.",
            "they should get {years} of what I earn if something happens to me.",
            "I want life cover for {years} of my salary.",
            "{years} of salary should be there for them if I die.",
            "insure me for {years} of salary, please.",
            "my life cover should come to {years} of salary.",
        ),
        "prepay": (
            "we'd like to pay {money} a month extra on the mortgage.",
            "please put an extra {money} a month into the mortgage.",
            "we want to pay the mortgage down by {money} more each month.",
            "I would like to bring the mortgage down by {money} a month.",
            "could you plan an extra {money} a month into the mortgage?",
        ),
    },
    openings=(
        "",
        "",
        "",
        "",
        "Well, ",
        "As for us, ",
        "Let me see: ",
    ),
)
"""Plain ways to say a wish. The last one about ``loss`` and about ``age`` is not understood by the reader."""

AMBIGUOUS: Final = Phrases(
    {
        "loss": (
            "I can take some ups and downs.",
            "a bit of risk is fine with me.",
            "I don't mind if it goes down now and then.",
            "a bit of risk does not scare me.",
            "some ups and downs are part of it, I guess.",
        ),
        "cushion": (
            "a few months of spending at hand would be good.",
            "we want a decent reserve in the bank.",
            "a few months of spending, say.",
            "a decent reserve would calm me.",
        ),
        "age": (
            "I'd like to retire in my {decade}.",
            "I hope to stop working in my {decade}.",
            "I see myself retire in my {decade}.",
            "to stop working in my {decade} would be fine.",
        ),
        "income": (
            "in retirement we'd like to live about as we do now.",
            "as pensioners we will need less than today.",
            "in retirement we don't want to count every cent.",
            "we'd like to live as pensioners without cutting back.",
        ),
        "study": (
            "we'd like to help with the child's studies.",
            "it would be nice to pay for some of university.",
            "I'd like to pay for some of university, at least.",
            "we want to help with the studies of our child.",
        ),
        "project": (
            "we'll have to pay for {project} before long.",
            "{project} is something that we think about.",
            "there is also {project} to be paid for.",
        ),
        "support": (
            "I help my mother a bit every month.",
            "my mother gets a little something from me.",
        ),
        "cover": (
            "the family should be all right for some years if I die.",
            "they should manage for some years if I die.",
        ),
        "prepay": (
            "we'd like to be rid of the mortgage a bit sooner.",
            "a smaller mortgage would be a relief.",
        ),
    },
    openings=("", "", "Well, ", "Hm, "),
)
"""Ways to say a wish that can be read in more than one way."""

_NOTHING: Final = Phrases(
    {
        "study": (
            "we have no plans for the child's studies.",
            "no, university is not our concern now.",
            "university is not our concern, really.",
            "there are no plans for the child's studies so far.",
        ),
        "project": (
            "no, nothing big is coming up.",
            "there is no big expense ahead that I know of.",
            "nothing big that I can think of.",
            "no big expense, as far as I can see.",
        ),
        "support": (
            "no, we support nobody else.",
            "no, there is nobody else whom we give money to.",
            "no, we support nobody outside the family.",
            "we support nobody but ourselves.",
        ),
        "cover": (
            "I have no wish for more life cover.",
            "no more life insurance than we need, please.",
            "no wish for more life cover on my side.",
            "no more life insurance, thank you.",
        ),
        "prepay": (
            "nothing extra on the mortgage, please.",
            "no, the mortgage is fine as it is.",
            "the mortgage is fine as it is.",
            "we want nothing extra on the mortgage.",
        ),
    }
)

_IN_PENSION: Final = r"(?:retire\w*|pensioners?|stopped working)"
_MOTHER: Final = r"\b(?:mother|father|parents)\b"

_PATTERNS: Final = Patterns(
    {
        "loss": (
            rf"\b(?:los\w+|fell|fall|cost us|down)\b[^.?!]*?\b(?P<n>{SHARE})[^.?!]*\byear",
            rf"\byear\b[^.?!]*?\b(?:lose|losing|loss|cost)\b[^.?!]*?\b(?P<n>{SHARE})",
            r"\b(?:lose|loss)\b[^.?!]*?\b(?P<n>\d{1,9}%)",
        ),
        "cushion": (
            rf"\b(?P<n>{MONTHS}) of spending",
            rf"\b(?:fund|reserve|bank|at hand|live|aside)\b[^.?!]*?\b(?P<n>{MONTHS})",
        ),
        "age": (
            r"\b(?:stop working|retire|work should be over)\b[^.?!]*?\b(?P<n>[4-7]\d)\b(?!,|%)",
        ),
        "income": (
            rf"\b{_IN_PENSION}\b[^.?!]*?(?P<n>{MONEY}) (?:a|per|each) month",
            rf"(?P<n>{MONEY}) (?:a|per|each) month\b[^.?!]*?\b{_IN_PENSION}\b",
        ),
        "study": (
            rf"\b(?P<n>{SHARE}) of (?:the )?(?:cost of )?(?:the child's )?(?:studies|university|college)",
            rf"\bstud(?:y|ies)\b[^.?!]*?\bpay (?P<n>{SHARE})",
        ),
        "project": (
            rf"(?:need|set aside) (?P<n>{MONEY}) for\b",
            rf"\b(?:coming up|two years)\b[^.?!]*?\bfor (?P<n>{MONEY})",
            rf"\bwill cost us (?P<n>{MONEY})",
        ),
        "support": (
            rf"{_MOTHER}[^.?!]*?(?P<n>{MONEY})",
            rf"(?P<n>{MONEY})[^.?!]*?{_MOTHER}",
        ),
        "cover": (rf"\b(?P<n>{NUMBER}) years? of (?:my )?(?:salary|what i earn)",),
        "prepay": (
            rf"(?P<n>{MONEY}) (?:a month |each month )?extra on the mortgage",
            rf"\bextra (?P<n>{MONEY}) a month into the mortgage",
            rf"\bmortgage down by (?P<n>{MONEY})",
        ),
    }
)
_VALUES: Final[Mapping[str, Callable[[str], int]]] = {
    "loss": share_in,
    "cushion": months_in,
    "age": int,
    "study": share_in,
    "cover": number_of,
}

_DECADES: Final = {"early": 2, "mid": 5, "late": 8}
_VAGUE: Final = Patterns(
    {
        "loss": (r"\bups and downs\b|\bbit of risk\b|\bgoes down now and then\b",),
        "cushion": (r"\b(?:a few months|decent reserve)\b",),
        "age": (
            r"\b(?:retire|stop working) in my (?P<part>early|mid|late)[- ](?P<ten>fif|six)ties\b",
        ),
        "study": (r"\b(?:help with|pay for some of)\b[^.?!]*\b(?:studies|university)",),
        "cover": (r"\bfor some years if i die\b",),
    }
)
_GUESSES: Final[Mapping[str, int]] = {"loss": 14, "cushion": 3, "study": 50, "cover": 3}
"""The reader's guesses at vague statements."""

_ACCEPTED: Final = (
    "What you have there is fine.",
    "Leave that as it is in your plan.",
    "That looks all right to me.",
    "I'd go with what you have put there.",
    "Your figure there is fine with me.",
    "I go with what you have in the plan.",
    "No objection, leave that as it is.",
)
_ACCEPTING: Final = re.compile(
    r"\b(?:is fine|leave that as it is|looks all right|go with what you have)\b", re.IGNORECASE
)

_NONE: Final = Patterns(
    {
        "study": (r"\bno plans for the child's studies\b|\buniversity is not our concern\b",),
        "project": (r"\bnothing big\b|\bno big expense\b",),
        "support": (r"\bsupport nobody\b|\bnobody else whom we give\b",),
        "cover": (r"\bno wish for more life cover\b|\bno more life insurance\b",),
        "prepay": (r"\bnothing extra on the mortgage\b|\bmortgage is fine as it is\b",),
    }
)


def say_fact(fact: Fact, words: Random, project: str = "", after: str = "") -> str:
    """A wish in plain words, or that there is none.

    Args:
        fact: the fact to state.
        words: chooses the words.
        project: the purpose of the money within two years.
        after: the words before it in the sentence, with a colon or comma.
    """
    if not after:
        phrases = PLAIN if fact.value else _NOTHING
        return phrases.say(fact.topic, words, **_fields(fact, words, project))
    variants = (PLAIN if fact.value else _NOTHING).variants
    return f"{after} {words.choice(variants(fact.topic, **_fields(fact, words, project)))}"


def say_accepted(words: Random) -> str:
    """Says that the plan may stay unchanged on the topic of the question."""
    return words.choice(_ACCEPTED)


@lru_cache(maxsize=1024)
def is_accepted(text: str) -> bool:
    """Whether a message leaves the plan unchanged on the topic of the question."""
    return _ACCEPTING.search(text) is not None and not read_facts(text)


def say_vaguely(fact: Fact, words: Random, project: str = "") -> str:
    """A wish in words that can be read in more than one way."""
    return AMBIGUOUS.say(fact.topic, words, **_fields(fact, words, project))


@lru_cache(maxsize=4096)
def read_facts(text: str) -> tuple[Fact, ...]:
    """The wishes that a text states, at most one a topic, the last one that it says; in no set order."""
    found: dict[Topic, Fact] = {}
    for heard in _NONE.read(text):
        topic = _topic(heard.key)
        found[topic] = Fact(topic, 0)
    for heard in _VAGUE.read(text):
        topic = _topic(heard.key)
        found[topic] = Fact(topic, _guess(topic, heard.fields), sure=False)
    for heard in _PATTERNS.read(text):
        topic = _topic(heard.key)
        found[topic] = Fact(topic, _VALUES.get(topic, money_in)(heard.fields["n"]))
    return tuple(found.values())


_ANSWERS: Final[Mapping[str, tuple[int, int]]] = {
    "loss": (1, 60),
    "cushion": (1, 24),
    "age": (40, 80),
    "income": (500, 50_000),
    "study": (1, 100),
    "project": (500, 500_000),
    "support": (10, 10_000),
    "cover": (1, 20),
    "prepay": (10, 10_000),
}
"""The figures that may answer a question about a topic, from and to."""
_FIGURE: Final = re.compile(MONEY)


def read_answer(text: str, topic: Topic) -> Fact | None:
    """The one figure of an answer to a question about a topic; None if there is none that may be meant."""
    low, high = _ANSWERS[topic]
    figures = [money_in(found[0]) for found in _FIGURE.finditer(text)]
    return Fact(topic, figures[0]) if len(figures) == 1 and low <= figures[0] <= high else None


def _guess(topic: Topic, fields: Mapping[str, str]) -> int:
    if topic != "age":
        return _GUESSES[topic]
    return (50 if fields["ten"].lower() == "fif" else 60) + _DECADES[fields["part"].lower()]


def _topic(key: str) -> Topic:
    return next(topic for topic in TOPICS if topic == key)


def _fields(fact: Fact, words: Random, project: str) -> Mapping[str, str]:
    """The value in words, in one of several ways."""
    n = fact.value
    thousands = n >= 2000 and n % 1000 == 0
    money = words.choice((f"${n:,}", f"{n:,}", *((f"{n // 1000} thousand",) if thousands else ())))
    months = counted(n, "month", "months")
    return {
        "n": str(n),
        "months": {6: "half a year", 12: "a year"}.get(n, months)
        if words.random() < 0.5
        else months,
        "money": money,
        "share": {50: "half", 75: "three quarters", 100: "all"}.get(n, f"{n}%")
        if words.random() < 0.5
        else f"{n}%",
        "years": counted(n, "year", "years"),
        "decade": f"{'early' if n % 10 < 4 else 'mid' if n % 10 < 7 else 'late'} "
        f"{'fif' if n < 60 else 'six'}ties",
        "project": project,
    }
