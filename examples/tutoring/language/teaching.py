"""Tutors' messages, and how to read them: feedback, answers, and tasks.

It is read by key words. Lessons are not read from words at all: see ``student.learning.Teach``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from ....engine.errors import InvalidInput
from ....tasks.phrases import Heard, Patterns, Phrases, sentences
from ..maths.expressions import find_problems, parse_number
from ..maths.rules import Component

__all__ = (
    "HINTS",
    "RULES",
    "TEACHING",
    "Answer",
    "Taught",
    "read_misconceptions",
    "read_teaching",
)

RULES: Final[dict[Component, str]] = {
    "add-signed": "with different signs you take the difference of the two sizes, and the sign of the bigger one",
    "subtract-negative": "taking away a negative is adding: only the two signs in the middle turn into a plus",
    "multiply-signs": "two numbers with the same sign give a positive product, with different signs a negative one",
    "order": "times comes before plus and minus, wherever it stands",
    "add-fractions": "bring both to a common denominator, change each top along with it, and then add only the tops",
    "multiply-fractions": "it is top times top and bottom times bottom, without any common denominator",
    "divide-fractions": "turn the second fraction over, and then multiply",
    "distribute": "the factor multiplies every term in the brackets, with its sign",
    "collect": "take the smaller x term away on both sides, so that x is left on one side only",
    "move-constant": "what is added to x on the left is taken away on the right, so it changes its sign",
    "divide-coefficient": "the number next to x multiplies it, so divide both sides by it",
}
"""The right rule of each component, as tutors explain it."""

HINTS: Final[dict[Component, str]] = {
    "add-signed": "which of the two numbers is bigger without its sign?",
    "subtract-negative": "what does taking away a negative mean on the number line?",
    "multiply-signs": "do the two factors have the same sign or not?",
    "order": "which of the operations comes first here?",
    "add-fractions": "can you add pieces that are not the same size?",
    "multiply-fractions": "do you really need a common denominator to multiply?",
    "divide-fractions": "which of the two fractions is the one you divide by?",
    "distribute": "how many terms are there in the brackets?",
    "collect": "how can x get away from one of the two sides?",
    "move-constant": "what undoes adding a number?",
    "divide-coefficient": "what undoes multiplying by a number?",
}
"""A hint towards each rule."""

TEACHING: Final = Phrases(
    {
        "right": (
            "yes, {answer} is right for {problem}.",
            "{problem} gives {answer}, that is correct.",
            "correct, {problem} gives {answer}.",
        ),
        "wrong": (
            "{said} is not right for {problem}.",
            "for {problem}, {said} is not correct.",
            "{said} is wrong for {problem}.",
        ),
        "sure": (
            "I have checked it once more: {said} is not right for {problem}.",
            "I see how you got there, but {said} is not correct for {problem}.",
        ),
        "mistaken": (
            "thank you, I had that wrong.",
            "I see, so that was my mistake.",
        ),
        "back": ("back to {problem}.", "now to {problem} again."),
        "refute": (
            "it looks as if you {does}.",
            "I think you {does} there, and that goes wrong.",
            "my guess is that you {does}.",
        ),
        "rule": ("the rule is: {rule}.", "remember: {rule}.", "instead: {rule}."),
        "example": (
            "let me show you one: {problem} gives {answer}: {rule}.",
            "for example, {problem} gives {answer}: {rule}.",
        ),
        "hint": ("a hint for {problem}: {hint}", "here is a hint for {problem}: {hint}"),
        "answer": (
            "the answer to number {number} is {answer}.",
            "number {number} comes out as {answer}, you can write that down.",
        ),
        "ask": (
            "what do you get for {problem}?",
            "can you work out {problem} for me?",
            "here is one for you: {problem}, what does it give?",
        ),
        "ask two": (
            "what do you get for {first}, and what for {second}?",
            "can you work out {first} and {second} for me?",
            "here are two for you: {first} and {second}, what do you get?",
        ),
        "item": (
            "what do you get for number {number}, {problem}?",
            "can you do number {number}, {problem}?",
        ),
        "again": (
            "can you try number {number} once more, {problem}?",
            "what do you get for number {number} now, {problem}?",
        ),
        "which": (
            "which number is it, then, for {problem}?",
            "sorry, what exactly do you get for {problem}?",
        ),
        "go on": (
            "please go on with the sheet, and write down what you get.",
            "carry on with the sheet on your own for now.",
        ),
        "sheet": (
            "I have put your homework on a sheet that we both can write on.",
            "your problems are on a shared sheet now.",
        ),
        "marked": ("I have marked your sheet.", "your sheet is marked up to here."),
        "done": ("that is the whole sheet.", "the sheet is complete now."),
    }
)
"""All that a tutor says."""

_MISCONCEPTION_WORDS: Final = {
    "adds-sizes": r"add\w* the (?:two )?sizes",
    "first-sign-wins": r"(?:always )?ke(?:ep|pt)\w* the first sign(?<!and keep the first sign)",
    "drops-double-minus": r"drop\w* (?:one of )?the (?:two )?minus",
    "all-turns-plus": r"every minus into a plus",
    "stays-minus": r"(?:leave|left|keep|kept) the product negative",
    "takes-away-instead": r"(?:read|take)\w* the second minus as",
    "left-to-right": r"from left to right",
    "sums-first": r"plus and minus before times|add\w* before (?:you )?multipl",
    "tops-and-bottoms": r"(?:add\w*|plus) the tops and (?:add\w* )?the bottoms",
    "tops-over-common": r"(?:leave|left|keep|kept) the tops",
    "keeps-denominator": r"multipl\w+ only the tops",
    "multiplies-crosswise": r"\bcross(?:wise|.multipl)",
    "divides-straight": r"straight across",
    "turns-first": r"(?:turn|flip)\w* (?:over )?the first",
    "first-term-only": r"only the first term",
    "loses-the-minus": r"forg[eo]t the minus|last term in the brackets without the minus",
    "adds-the-xs": r"add\w* the x(?:s| terms)",
    "forgets-an-x": r"(?:let|leave|left) the x on the right",
    "keeps-the-sign": r"without changing (?:its|the) sign|to the other side as it is",
    "takes-away-backwards": r"the right side away from",
    "subtracts-coefficient": r"subtract\w* the number in front",
    "divides-backwards": r"divid\w* the number in front of x by",
}

_BUGS_READ: Final = Patterns(_MISCONCEPTION_WORDS)
_MARKERS: Final = Patterns(
    {
        "right": r"\b(?:right|correct|exactly|well done)\b",
        "wrong": r"\b(?:not (?:quite )?(?:right|correct)|wrong|incorrect)\b|not yet (?:right|correct)",
        "hint": r"\bhint\b|think about|have a look at",
        "example": r"let me show|for example|worked example|worked out",
        "answer": r"number (?P<number>\d{1,3}) (?:comes out as|is) (?:x = )?(?P<answer>-?\d+(?:/\d+)?)"
        r"|answer (?:to|for) (?:number )?(?P<to>\d{1,3}) is (?:x = )?(?P<value>-?\d+(?:/\d+)?)",
        "go on": r"\b(?:go on|carry on|continue|on your own)\b",
    }
)
_NUMBERED: Final = re.compile(r"\bnumber (\d{1,3})", re.IGNORECASE)
_ASKING: Final = re.compile(
    r"\?|^\s*(?:now )?(?:try|work out|solve|calculate|compute)\b", re.IGNORECASE
)


class Answer(NamedTuple):
    """An answer that was given away, and its homework item."""

    number: int
    answer: Fraction


class Taught(NamedTuple):
    """The content of a tutor's message.

    Attributes:
        asked: problems that the student is asked to work out, in order.
        items: numbers of items of the homework that it asks for, in order.
        answers: answers to items that it gives away.
        judged: problems on which it gives feedback, each with whether it was right; an empty text is
            the last problem that the student answered.
        leaves: whether it leaves the lead to the student.
    """

    asked: tuple[str, ...] = ()
    items: tuple[int, ...] = ()
    answers: tuple[Answer, ...] = ()
    judged: tuple[tuple[str, bool], ...] = ()
    leaves: bool = False


def read_misconceptions(text: str) -> tuple[str, ...]:
    """The misconceptions that a text describes, by their names."""
    return tuple(dict.fromkeys(heard.key for heard in _BUGS_READ.read(text)))


@lru_cache(maxsize=512)
def read_teaching(text: str) -> Taught:
    """Reads a tutor's message."""
    asked: list[str] = []
    items: list[int] = []
    answers: list[Answer] = []
    judged: list[tuple[str, bool]] = []
    leaves = False
    for sentence in sentences(text):
        marks = {heard.key: heard for heard in _MARKERS.read(sentence)}
        problems = find_problems(sentence)
        leaves = leaves or "go on" in marks
        if "answer" in marks:
            answers += _answers(marks["answer"])
        elif "hint" in marks or "example" in marks and problems:
            continue  # its problem is not a task
        elif _ASKING.search(sentence):
            asked += problems
            items += (int(number) for number in _NUMBERED.findall(sentence))
        elif "wrong" in marks or "right" in marks:
            judged.append((problems[0] if problems else "", "wrong" not in marks))
    return Taught(tuple(asked), tuple(items), tuple(answers), tuple(judged), leaves)


def _answers(heard: Heard) -> tuple[Answer, ...]:
    """The answer that a sentence gives away; none if it is not a number."""
    number = heard.fields.get("number") or heard.fields.get("to") or "0"
    try:
        answer = parse_number(heard.fields.get("answer") or heard.fields.get("value") or "")
    except InvalidInput:
        return ()
    return (Answer(int(number), answer),)
