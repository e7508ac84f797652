"""Students' messages about problems, and how a tutor reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from ....engine.errors import InvalidInput
from ....tasks.phrases import Patterns, Phrases
from ....users.deferrals import is_deferral
from ..maths.expressions import find_problems, parse_number

__all__ = ("SAYING", "Said", "read_said")

SAYING: Final = Phrases(
    {
        "result": (
            "I get {answer}.",
            "that gives {answer}, I think.",
            "I got {answer} for that one.",
            "it should be {answer}.",
            "{answer}?",
            "my answer is {answer}.",
            "I make it {answer}.",
            "{answer}, if I did that right.",
            "is it {answer}?",
        ),
        "result of": (
            "for {problem} I get {answer}.",
            "{problem} gives {answer}, I think.",
            "I got {answer} for {problem}.",
            "{problem} is {answer}, I guess.",
            "{problem}: {answer}.",
        ),
        "working": ("I {does}.", "what I do is: I {does}.", "because I {does}."),
        "fuzzy": (
            "something with {size}, but I am not sure about the sign.",
            "either {size} or minus {size}, I keep mixing that up.",
        ),
        "fuzzy sum": (
            "roughly {size}, but I lost track in the middle.",
            "about {size}, perhaps. I did it in my head.",
        ),
        "fuzzy fraction": (
            "some fraction, a bit more than {near} perhaps.",
            "I have it somewhere in my notes, roughly {near}.",
        ),
        "wrote": (
            "I wrote {answers}.",
            "I have written down {answers}.",
            "so, {answers}.",
            "I put down {answers}.",
            "my try: {answers}.",
            "I came up with {answers}.",
            "that makes {answers}.",
            "I have {answers} now.",
            "here is what I get: {answers}.",
        ),
        "rewrote": (
            "{answers}, is that better?",
            "I have changed it, now it is {answers}.",
            "now I get {answers}.",
            "this time I get {answers}.",
            "a new try: {answers}.",
            "I went over it again, and I have {answers} now.",
            "then it must be {answers}.",
        ),
        "same": (
            "I still get {answers}.",
            "it comes out as {answers} again.",
            "I have tried again, and it is still {answers}.",
            "once more I get {answers}.",
        ),
        "one": ("{answer} for number {number}",),
        "disputes": (
            "No, I am quite sure that number {number} is {answer}: I {does}.",
            "No, that is not a mistake: I {does}, so number {number} is {answer}.",
            "I do not think that number {number} is wrong: I {does}, and get {answer}.",
            "That can't be wrong: in number {number} I {does}, and get {answer}.",
        ),
        "not mine": (
            "No, that is not what I do: I {does}.",
            "No, that is not how I did it: I {does}.",
            "I think you misunderstood me: I {does}.",
        ),
        "not mine there": (
            "No, with {topic} that is not what I do: I {does}.",
            "No, with {topic} that is not how I did it: I {does}.",
            "I think you misunderstood me with {topic}: I {does}.",
        ),
        "copied": (
            "thanks, I have copied that.",
            "great, I have put that on the sheet.",
            "okay, written down.",
            "got it, it is on the sheet.",
            "thanks, that one is filled in.",
        ),
        "stuck": (
            "I don't get number {number}. How do I start?",
            "what do I have to do in number {number}?",
            "number {number} makes no sense to me.",
            "I am stuck on number {number}.",
            "I do not understand number {number} at all.",
            "no idea how number {number} goes.",
        ),
        "begs": (
            "can't you just tell me what number {number} is?",
            "could you just give me the answer to number {number}?",
            "just tell me number {number}, please.",
            "give me the answer to number {number}, please?",
            "number {number} is too hard, just tell me.",
        ),
        "no idea": (
            "no idea, to be honest.",
            "I don't know.",
            "can't you just tell me?",
            "not sure, can you do it?",
            "no idea, sorry.",
            "I don't know how that works.",
            "I really have no idea.",
        ),
        "not now": (
            "not now, I want to get on with the sheet.",
            "can we skip that one? I'd rather do my homework.",
            "no extra problems, please.",
            "that is not on my sheet, let us skip it.",
        ),
        "complete": (
            "that is all of it, I think.",
            "I am through with the sheet.",
            "done, I hope.",
            "I think that was all of it.",
            "I have done every number.",
        ),
    },
    openings=("", "", "", "hmm, ", "okay, ", "well, ", "right, "),
)
"""All messages of students, except their request."""

_READ: Final = Patterns(
    {
        "disputes": r"\bquite sure that number\b|\bnot a mistake\b|\bdo not think that number\b|\bcan't be wrong: in number\b",
        "not now": r"\bnot now\b|\bskip (?:that|it)\b|\bno extra problems\b",
        "not mine": r"\bnot what I do\b|\bnot how I did\b|\bmisunderstood me\b",
        "begs": r"\bjust (?:tell|give)\b|can you do it|\bgive me the answer",
        "stuck": r"\b(?:don't|do not) (?:get|understand)\b|how do I start|what do I (?:have to )?do"
        r"|makes no sense|\bstuck (?:on|in|with)\b|no idea how number",
        "no idea": r"\bno idea\b|\bI don't know\b|\bnot sure, can\b",
        "complete": r"\ball of it\b|\bthrough with\b|\bdone\b",
    }
)
_NUMBER: Final = r"(?:-|−|minus )?(?<!\d)\d{1,7}(?:/\d{1,7})?(?!\d)"
_FOR_NUMBER: Final = re.compile(rf"(?:x = )?({_NUMBER}) for number (\d{{1,3}})", re.IGNORECASE)
_OF_NUMBER: Final = re.compile(
    rf"number (\d{{1,3}})\D{{1,12}}?(?:x = )?({_NUMBER})\b", re.IGNORECASE
)
_ITEM: Final = re.compile(r"number (\d{1,3})", re.IGNORECASE)
_ANY: Final = re.compile(rf"(?:x = )?(?<![\d/])({_NUMBER})(?![\d/])", re.IGNORECASE)
_UNSURE: Final = re.compile(
    r"\beither\b|not sure about the sign|\brough|a bit more|perhaps", re.IGNORECASE
)


class Said(NamedTuple):
    """The content of a student's message, as far as it can be read.

    Attributes:
        results: problems with the answers to them; an empty problem is the one that was asked.
        items: numbers of items with the answers to them.
        stuck: number of the item that they do not know how to begin; 0 for none.
        begs: number of the item of which they want the answer; 0 for none, -1 for the problem asked.
        disputes: number of the item that they hold to be right although it was marked wrong; 0 for none.
        lost: whether they cannot do the problem asked.
        unclear: whether they seem to answer, but unreadably.
        corrects: whether they say that the tutor is wrong about what they do.
    """

    results: tuple[tuple[str, Fraction], ...] = ()
    items: tuple[tuple[int, Fraction], ...] = ()
    stuck: int = 0
    begs: int = 0
    disputes: int = 0
    lost: bool = False
    unclear: bool = False
    corrects: bool = False


@lru_cache(maxsize=512)
def read_said(text: str, asked: tuple[str, ...]) -> Said:
    """Reads a student's message.

    Args:
        text: the message.
        asked: problems that were asked before it.
    """
    heard = {one.key for one in _READ.read(text)}
    named = _ITEM.search(text)
    number = int(named[1]) if named else 0
    if "disputes" in heard:
        return Said(disputes=number)
    if "not now" in heard:
        return Said()
    if "begs" in heard:
        return Said(begs=number or -1)
    if "stuck" in heard:
        return Said(stuck=number)
    if "no idea" in heard or is_deferral(text):
        return Said(lost=True)
    corrects = "not mine" in heard
    if _UNSURE.search(text):
        return Said(unclear=True, corrects=corrects)
    pairs = [(item, _number(answer)) for answer, item in _FOR_NUMBER.findall(text)]
    pairs = pairs or [(item, _number(answer)) for item, answer in _OF_NUMBER.findall(text)]
    if pairs:
        found = tuple((int(item), one) for item, one in pairs if one is not None)
        return Said(items=found, corrects=corrects)
    results = _results(text, asked)
    return Said(results=results, unclear=bool(asked) and not results, corrects=corrects)


def _results(text: str, asked: Sequence[str]) -> tuple[tuple[str, Fraction], ...]:
    """Answers to problems, each near the problem that it names; else the only number there is."""
    found = []
    for sentence in re.split(r"(?<=[.!?])\s+", text):
        problems = find_problems(sentence)
        rest = sentence
        for problem in problems:
            rest = rest.replace(problem, " ", 1)
        numbers = _ANY.findall(rest)
        number = _number(numbers[0]) if len(numbers) == 1 else None
        if number is not None:
            found.append((problems[0] if problems else "", number))
    named = [one for one in found if one[0]]
    if named:
        return tuple(named)
    return tuple(found) if len(found) == 1 and len(asked) <= 1 else ()


def _number(written: str) -> Fraction | None:
    """A number as it was written; None if it is not one, such as 3/0."""
    try:
        return parse_number(written.lower().replace("minus ", "-"))
    except InvalidInput:
        return None
