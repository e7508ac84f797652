"""The analyst's hidden profile: in sentences, which people and models read, and which are read back here.

How much the analyst can read is recorded in numbers, for rules and scorers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from .facts import RULINGS, Kind, Names, Ruling, Rulings, Topic
from .instances import Instance, Wants

__all__ = (
    "Profile",
    "profile_of",
    "read_profile",
    "read_wants",
    "sentences_of",
    "write_profile",
)

_TOPICS: Final[Mapping[Kind, str]] = {
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


_SURVEY: Final = "The survey is about {}, sold as {}, in {}."
_WANTS: Final = "You want to understand {}."
_GOAL: Final = "You want a recommendation that rests on {}."
_OPENS: Final = "As soon as you understand {}, you also want to understand {}."
_PIVOT: Final = "As soon as you understand {}, the recommendation has to rest on that instead."
_LIMITS: Final = "You read only the beginning of a long message or report. After a few pages you are tired of reading."
_READING: Final = "reading"
_OLDER_LIMITS: Final = "You take in {} words at a time, and {} altogether; then you are tired."
"""As older logs have them."""


class Profile(msgspec.Struct, frozen=True):
    """An analyst's knowledge, wishes and capacity to read; see ``Instance`` for the fields."""

    names: Names
    wants: Wants
    opens: Mapping[Topic, tuple[Topic, ...]]
    pivot: Topic | None
    rulings: Rulings
    attention: int
    stamina: int


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
    """A profile as recorded: in sentences, and the capacity to read in numbers."""
    reading = {"attention": profile.attention, "stamina": profile.stamina}
    return {"profile": list(_sentences(profile)), _READING: reading}


def _sentences(profile: Profile) -> Iterator[str]:
    names = profile.names

    def said(topic: Topic) -> str:
        return _TOPICS[topic.kind].format(subject=names.subject, about=topic.about)

    yield _SURVEY.format(names.subject, ", ".join(names.products), ", ".join(names.regions))
    for topic in profile.wants.topics:
        yield _WANTS.format(said(topic))
    yield _GOAL.format(said(profile.wants.goal))
    for topic, opened in profile.opens.items():
        for one in opened:
            yield _OPENS.format(said(topic), said(one))
    if profile.pivot is not None:
        yield _PIVOT.format(said(profile.pivot))
    for ruling in RULINGS:
        yield _RULINGS[ruling][0 if profile.rulings[ruling] else 1]
    yield _LIMITS


def read_profile(written: JSON) -> Profile:
    """Reads a profile back.

    Raises:
        InvalidInput: it is none of this task.
    """
    texts = sentences_of(written)
    return _profile(texts, _limits(written, texts))


@lru_cache(maxsize=256)
def _profile(texts: tuple[str, ...], limits: tuple[int, int]) -> Profile:
    """The profile in sentences; each session reads it several times."""
    subject, products, regions = _one(_SURVEY, texts)
    names = Names(subject, tuple(regions.split(", ")), tuple(products.split(", ")))
    opens: dict[Topic, tuple[Topic, ...]] = {}
    for before, after in _all(_OPENS, texts):
        topic = _topic(before)
        opens[topic] = (*opens.get(topic, ()), _topic(after))
    attention, stamina = limits
    return Profile(
        names=names,
        wants=_wants(texts),
        opens=opens,
        pivot=next((_topic(found[0]) for found in _all(_PIVOT, texts)), None),
        rulings={ruling: _RULINGS[ruling][0] in texts for ruling in RULINGS},
        attention=attention,
        stamina=stamina,
    )


def _limits(written: JSON, texts: Sequence[str]) -> tuple[int, int]:
    """The words that an analyst takes in at a time, and altogether."""
    for attention, stamina in _all(_OLDER_LIMITS, texts):
        return int(attention), int(stamina)
    found = written.get(_READING) if isinstance(written, Mapping) else None
    try:
        limits = msgspec.convert(found, dict[str, int])
        return limits["attention"], limits["stamina"]
    except (msgspec.ValidationError, KeyError):
        raise InvalidInput("the profile does not say how much the analyst can read") from None


def read_wants(written: JSON) -> Wants:
    """The analyst's wishes, read from a written profile.

    Raises:
        InvalidInput: it is not a profile of this task.
    """
    return _wants(sentences_of(written))


@lru_cache(maxsize=256)
def _wants(texts: tuple[str, ...]) -> Wants:
    topics = tuple(_topic(found[0]) for found in _all(_WANTS, texts))
    return Wants(topics, _topic(_one(_GOAL, texts)[0]))


def _topic(text: str) -> Topic:
    for kind, form in _TOPICS.items():
        found = re.fullmatch(
            _pattern(form.replace("{subject}", "{}").replace("{about}", "{}")), text
        )
        if found is not None:
            return msgspec.convert((kind, found[found.re.groups]), Topic)
    raise InvalidInput(f"the profile holds {text!r}, which is not a topic of this task")


def sentences_of(written: JSON) -> tuple[str, ...]:
    """The sentences of a written profile.

    Raises:
        InvalidInput: it is none of this task.
    """
    found = written.get("profile") if isinstance(written, Mapping) else None
    if not isinstance(found, list | tuple):
        raise InvalidInput("this is not an analyst's profile: it lacks a list of sentences")
    return tuple(map(str, found))


def _one(form: str, texts: Sequence[str]) -> tuple[str, ...]:
    found = next(_all(form, texts), None)
    if found is None:
        raise InvalidInput(
            f"the profile of an analyst lacks a sentence: {form.format('...', '...', '...')}"
        )
    return found


def _all(form: str, texts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The contents of a form's blanks, for each text that has this form."""
    pattern = re.compile(_pattern(form))
    for text in texts:
        found = pattern.fullmatch(text)
        if found is not None:
            yield found.groups()


@lru_cache(maxsize=64)
def _pattern(form: str) -> str:
    return re.escape(form).replace(r"\{\}", "(.+?)")
