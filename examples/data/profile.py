"""The analyst's hidden profile: in sentences, which a model can read, and which are read back here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from .facts import RULINGS, Names, Ruling, Rulings, Topic
from .world.instances import Instance, Wants

__all__ = ("Profile", "describe", "profile_of", "read_profile", "read_wants", "write_profile")

_TOPICS: Final = {
    "favourite": "which {subject} people in {about} like best",
    "price": "whether {about} costs more in some region than elsewhere",
    "age": "whether younger or older people rate {about} higher",
    "channel": "in which single channel younger and older people differ over {about}",
    "quality": "how many rows of {about} are wrong",
}

_RULINGS: Final[Mapping[Ruling, tuple[str, str]]] = {
    "pilot": (
        "The pilot wave was run like the rest, and counts.",
        "The pilot wave was a dry run, and must be left out.",
    ),
    "staff": (
        "Answers of staff count like any others.",
        "Answers of staff must be left out.",
    ),
    "zeros": (
        "A rating of 0 is a real rating.",
        "A rating of 0 means that no answer was given.",
    ),
    "airport": (
        "Prices at airports count like any others.",
        "Prices at airports are set by others, and must be left out.",
    ),
    "within": (
        "Age groups must be compared within each channel, since the channel decides who comes.",
        "Age groups must be compared over all channels, since people choose a channel by their age.",
    ),
}


class Profile(msgspec.Struct, frozen=True):
    """What an analyst knows, wants and can take in; see ``Instance`` for the fields."""

    names: Names
    wants: Wants
    opens: Mapping[Topic, tuple[Topic, ...]]
    pivot: Topic | None
    rulings: Rulings
    attention: int
    stamina: int


def describe(topic: Topic, subject: str) -> str:
    """A topic as an indirect question."""
    return _TOPICS[topic.kind].format(subject=subject, about=topic.about)


def profile_of(instance: Instance) -> Profile:
    """The profile of an instance's analyst at first."""
    return Profile(
        instance.survey.names,
        instance.first,
        instance.opens,
        instance.pivot,
        instance.rulings,
        instance.attention,
        instance.stamina,
    )


def write_profile(profile: Profile) -> JSON:
    """A profile in sentences."""
    subject = profile.names.subject

    def said(topic: Topic) -> str:
        return describe(topic, subject)

    pivot = [] if profile.pivot is None else [f"When you understand {said(profile.pivot)}."]
    return {
        "survey": [
            f"It is about {subject}.",
            f"Products: {', '.join(profile.names.products)}.",
            f"Regions: {', '.join(profile.names.regions)}.",
        ],
        "you want to understand": [f"{said(topic)}." for topic in profile.wants.topics],
        "you want a recommendation that rests on": f"{said(profile.wants.goal)}.",
        "you want a recommendation on something else": pivot,
        "you become curious": [
            f"When you understand {said(topic)}: {said(one)}."
            for topic, opened in profile.opens.items()
            for one in opened
        ],
        "you know": [_RULINGS[r][0 if profile.rulings[r] else 1] for r in RULINGS],
        "you take in": f"{profile.attention} words at a time, and {profile.stamina} altogether.",
    }


def read_profile(written: JSON) -> Profile:
    """Reads a profile back.

    Raises:
        InvalidInput: it is none of this task.
    """
    if not isinstance(written, Mapping):
        raise InvalidInput("the profile is none of an analyst: it has no parts")
    survey = " ".join(_texts(written, "survey"))
    names = Names(
        _found(r"about (.+?)\.", survey),
        tuple(_found(r"Regions: (.+?)\.", survey).split(", ")),
        tuple(_found(r"Products: (.+?)\.", survey).split(", ")),
    )
    opens: dict[Topic, tuple[Topic, ...]] = {}
    for line in _texts(written, "you become curious"):
        topic, _, opened = line.removeprefix("When you understand ").partition(": ")
        key = _topic(topic, names)
        opens[key] = (*opens.get(key, ()), _topic(opened, names))
    pivot = _texts(written, "you want a recommendation on something else")
    known = _texts(written, "you know")
    numbers = re.findall(r"\d+", " ".join(_texts(written, "you take in")))
    if len(numbers) != 2:
        raise InvalidInput("the profile does not say how much the analyst takes in")
    return Profile(
        names=names,
        wants=read_wants(written, names),
        opens=opens,
        pivot=_topic(pivot[0].removeprefix("When you understand "), names) if pivot else None,
        rulings={ruling: _RULINGS[ruling][0] in known for ruling in RULINGS},
        attention=int(numbers[0]),
        stamina=int(numbers[1]),
    )


def read_wants(written: JSON, names: Names) -> Wants:
    """What the analyst wants, from a written profile.

    Raises:
        InvalidInput: it is none of this task.
    """
    if not isinstance(written, Mapping):
        raise InvalidInput("the profile is none of an analyst: it has no parts")
    goal = " ".join(_texts(written, "you want a recommendation that rests on"))
    topics = _texts(written, "you want to understand")
    return Wants(tuple(_topic(text, names) for text in topics), _topic(goal, names))


def _topic(text: str, names: Names) -> Topic:
    for kind, form in _TOPICS.items():
        pattern = re.escape(form).replace(r"\{subject\}", ".+?").replace(r"\{about\}", "(.+?)")
        found = re.fullmatch(rf"{pattern}\.?", text)
        if found is not None:
            return msgspec.convert((kind, found[1]), Topic)
    raise InvalidInput(f"the profile holds {text!r}, which is no topic of this survey")


def _texts(written: Mapping[str, JSON], part: str) -> list[str]:
    value = written.get(part)
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Sequence):
        raise InvalidInput(f"the profile has no part {part!r}")
    return [str(one) for one in value]


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    if found is None:
        raise InvalidInput(f"the profile does not say what the survey is about: {text!r}")
    return found[1]
