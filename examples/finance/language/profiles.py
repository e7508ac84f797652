"""The hidden profile of a client in sentences: their wishes, and what would change their mind.

The first part is what the client can tell. The second is what they do not know of themselves yet: it
becomes a part of the first once they have seen or heard the thing that it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..world.household import TOPICS, Topic, Wishes

__all__ = ("CAUSES", "HEARD", "Profile", "read_profile", "write_profile")

_SENTENCES: Final[Mapping[Topic, str]] = {
    "loss": "I can bear a year that takes {n} per cent of my investments, and no more.",
    "cushion": "My reserve in the bank has to carry us for {n} months.",
    "age": "My last year at work is the one in which I turn {n}.",
    "income": "As a pensioner I mean to live on {n} dollars each month.",
    "study": "Of the cost of our child's university, {n} per cent should come from us.",
    "project": "Before two years are over we have to spend {n} dollars on {project}.",
    "support": "My mother gets {n} dollars from me each month, which is on no form.",
    "cover": "Should I die, {n} years of my salary have to be there for my family.",
    "prepay": "Beyond the instalments, {n} dollars a month should reduce what we owe on the house.",
}
_READ: Final = {
    topic: re.compile(
        re.escape(text)
        .replace(r"\{n\}", r"(?P<n>\d+)")
        .replace(r"\{project\}", "(?P<project>.+?)")
        .replace("months", "months?")
    )
    for topic, text in _SENTENCES.items()
}

CAUSES: Final[Mapping[Topic, str]] = {
    "loss": "seeing what a bad year does to the money",
    "cushion": "seeing how soon the reserve is used up",
    "age": "seeing how small the chance of that is",
    "study": "seeing what studies cost",
    "cover": "seeing what the family would have left",
}
"""Causes for a client to think again, by topic."""

HEARD: Final[Mapping[Topic, str]] = {
    "loss": "a colleague spoke of the savings that she lost when she sold in a panic",
    "cushion": "a colleague was laid off and ran out of money before he found work",
    "age": "a friend who had stopped early went back to work for the money",
    "study": "a sister said what her son's first year at university costs",
    "cover": "a neighbour died, and his wife had to sell the house",
}
"""Stories that a client may hear from others, by topic."""

_KNOWN: Final = (
    "We cannot do with less than {spending} dollars a month, and I earn {salary} a year."
)
_READ_KNOWN: Final = re.compile(
    r"We cannot do with less than (\d+) dollars a month, and I earn (\d+)"
)
_SEEN: Final = "After {cause}: "
_TALKED: Final = "Soon I hear that {story}: "


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A client's wishes, and what would change them.

    Attributes:
        spending: the household's essential spending, a month.
        salary: the higher of its salaries, a year.
        holds: their current wishes.
        moved: their wishes after a change of mind, by topic.
        heard: the topic about which others will talk to them; None if they will not.
        project: the purpose of the money within two years.
    """

    spending: int
    salary: int
    holds: Wishes
    moved: Mapping[Topic, int]
    heard: Topic | None
    project: str

    @property
    def held(self) -> Mapping[Topic, int]:
        """The wishes that the client holds, by topic."""
        return {topic: getattr(self.holds, topic) for topic in TOPICS}

    def after(self, topic: Topic) -> Profile:
        """The profile once the client has changed their mind on a topic."""
        moved = {other: value for other, value in self.moved.items() if other != topic}
        holds = msgspec.structs.replace(self.holds, **{topic: self.moved[topic]})
        heard = None if self.heard == topic else self.heard
        return msgspec.structs.replace(self, holds=holds, moved=moved, heard=heard)


def write_profile(profile: Profile) -> Mapping[str, JSON]:
    """The profile as the private part of a session's opening."""
    held = profile.held
    said: list[JSON] = [_KNOWN.format(spending=profile.spending, salary=profile.salary)]
    said += [_say(topic, held[topic], profile.project) for topic in TOPICS if held[topic]]
    later: list[JSON] = []
    for topic, value in profile.moved.items():
        before = _TALKED if topic == profile.heard else _SEEN
        told = before.format(cause=CAUSES[topic], story=HEARD[topic])
        later.append(told + _say(topic, value, profile.project))
    return {"profile": said, "second thoughts": later}


def read_profile(private: JSON) -> Profile:
    """Reads what `write_profile` wrote.

    Raises:
        InvalidInput: it is something else.
    """
    parts = private if isinstance(private, Mapping) else {}
    return _read(_texts(parts.get("profile")), _texts(parts.get("second thoughts")))


@lru_cache(maxsize=64)
def _read(said: tuple[str, ...], later: tuple[str, ...]) -> Profile:
    held: dict[str, int] = {}
    project, spending, salary = "", 0, 0
    for text in said:
        known = _READ_KNOWN.match(text)
        if known is not None:
            spending, salary = int(known[1]), int(known[2])
        for topic, pattern in _READ.items():
            found = pattern.fullmatch(text)
            if found is not None:
                held[topic] = int(found["n"])
                project = found["project"] if topic == "project" else project
    moved: dict[Topic, int] = {}
    heard: Topic | None = None
    for text in later:
        for topic, pattern in _READ.items():
            found = pattern.search(text)
            if found is not None:
                moved[topic] = int(found["n"])
                heard = topic if text.startswith("Soon") else heard  # "Soon, " in older logs
    try:
        holds = msgspec.convert(held, Wishes)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the hidden profile is not one of a client: {error}") from error
    return Profile(
        spending=spending, salary=salary, holds=holds, moved=moved, heard=heard, project=project
    )


def _say(topic: Topic, value: int, project: str) -> str:
    text = _SENTENCES[topic].format(n=value, project=project)
    return text.replace(" 1 months", " 1 month")


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(str(text) for text in value) if isinstance(value, Sequence) else ()
