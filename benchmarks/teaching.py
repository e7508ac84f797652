"""Measures how far readers of a tutor's free text agree with labels: rules, and a model if one is given.

    python -P -m duolog.benchmarks.teaching
    python -P -m duolog.benchmarks.teaching --model gpt-4o

One person labelled 48 messages of tutors with the skills that each teaches, apart from the rubric and from the rules. Precision and
recall are over pairs of a message and a skill.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from duolog.engine.errors import InvalidInput
from duolog.engine.models.protocol import Message, ModelClient, ModelRequest
from duolog.engine.text import count_words
from duolog.examples.tutoring.maths.expressions import find_problems
from duolog.examples.tutoring.maths.solving import components_in
from duolog.examples.tutoring.tutor.judge import judge_prompt, read_verdict

__all__ = ("Agreement", "Explanation", "agreement", "by_model", "by_rules", "explanations", "main")

_WORDS: Final = 10
"""Words of a message from which the rules take it for more than an exercise or a mark."""


class Explanation(NamedTuple):
    """A message, and the skills that it teaches by its label."""

    text: str
    skills: frozenset[str]


class Agreement(NamedTuple):
    """Agreement with the labels.

    Attributes:
        precision: share of the credited pairs that are labelled.
        recall: share of the labelled pairs that are credited.
        same: share of the messages with exactly the labelled skills.
    """

    precision: float
    recall: float
    same: float


def explanations(path: Path) -> list[Explanation]:
    """The labelled messages of a file: a list of text, skills and kind."""
    return [
        Explanation(text, frozenset(skills))
        for text, skills, _ in json.loads(path.read_text(encoding="utf-8"))
    ]


def by_rules(text: str) -> frozenset[str]:
    """The skills that a message teaches by rules: those of the problems that it names, if it is long."""
    named = find_problems(text) if count_words(text) >= _WORDS else ()
    return frozenset(components_in(one)[0] for one in named if components_in(one))


async def by_model(client: ModelClient, model: str, text: str) -> frozenset[str]:
    """The skills that a message teaches by the judge; none if its reply cannot be read."""
    asked = ModelRequest(
        model=model, messages=(Message(role="user", content=judge_prompt(text, "")),)
    )
    reply = await client.complete(asked)
    try:
        return frozenset(one.skill for one in read_verdict(reply.text))
    except InvalidInput:
        return frozenset()


def agreement(pairs: Iterable[tuple[frozenset[str], frozenset[str]]]) -> Agreement:
    """The agreement of credited skills with labelled ones, message by message."""
    found = list(pairs)
    right = sum(len(given & label) for given, label in found)
    given_, labelled = (sum(len(pair[n]) for pair in found) for n in (0, 1))
    same = sum(given == label for given, label in found)
    return Agreement(right / max(given_, 1), right / max(labelled, 1), same / max(len(found), 1))


async def _ask(model: str, labelled: list[Explanation]) -> Agreement:
    from duolog.engine.models.litellm.client import LiteLLMModel

    client = LiteLLMModel()
    return agreement([(await by_model(client, model, one.text), one.skills) for one in labelled])


def main() -> None:
    """Prints the agreement of each reader."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model")
    parser.add_argument(
        "--labels", type=Path, default=Path("tests/examples/tutoring/explanations.json")
    )
    asked = parser.parse_args()
    labelled = explanations(asked.labels)
    readers = {"rules": agreement((by_rules(one.text), one.skills) for one in labelled)}
    if asked.model:
        readers[asked.model] = anyio.run(partial(_ask, asked.model, labelled))
    print(f"{len(labelled)} messages     precision  recall  same skills")
    for name, one in readers.items():
        print(f"{name:<16} {one.precision:>9.2f} {one.recall:>7.2f} {one.same:>12.2f}")


if __name__ == "__main__":
    main()
