"""Personas of simulated users: their willingness, their standards and their limits.

Name a persona, and append any of its numbers to change them: ``bounded+memory=3+vague=0.2``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Annotated, TypeAlias

import msgspec

from ..engine.errors import InvalidInput
from ..engine.settings import read_settings
from ..engine.text import suggestion

__all__ = (
    "PERSONAS",
    "Cognition",
    "Persona",
    "find_persona",
    "is_persona_file",
    "plays",
    "read_persona",
)

_Share: TypeAlias = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
_Above: TypeAlias = Annotated[float, msgspec.Meta(gt=0.0)]
_Least: TypeAlias = Annotated[float, msgspec.Meta(ge=0.0)]

_SETS = "+"
"""Stands before each number that is set behind a name."""

_FILE = ".toml"


class Cognition(msgspec.Struct, frozen=True, kw_only=True):
    """The cognitive limits of a simulated user; each default switches its mechanism off.

    A user's own turns, that is messages, are the clock of forgetting; others' messages and outputs
    are that of understanding. ``docs/people.md`` says what the values in use are taken from.

    Attributes:
        attention: words of a message that are read in full; None for all.
        skims: share of the sentences after these that are read.
        memory: half-life of what was said, in own turns; None if nothing is forgotten.
        misreads: share of the figures in others' messages that are taken for another one.
        understanding: share of the task that is understood at the beginning.
        learns: share of the rest that each message and each output of others adds.
        trust: in the agent at the beginning.
        trust_loss: share of the trust that a round rated 1 or 2 takes away.
        trust_gain: share of the missing trust that a round rated 4 or 5 gives back.
        leniency: standard deviation between people of what they add to every rating, in points.
        anchoring: weight of their last rating in the next one.
        reading_cost: points that a rating loses for each 100 words of messages in its round.
        rating_noise: standard deviation of what is left unexplained of a rating, in points.
    """

    attention: _Above | None = None
    skims: _Share = 1.0
    memory: _Above | None = None
    misreads: _Share = 0.0
    understanding: _Share = 1.0
    learns: _Share = 0.0
    trust: _Share = 1.0
    trust_loss: _Share = 0.0
    trust_gain: _Share = 0.0
    leniency: _Least = 0.0
    anchoring: _Share = 0.0
    reading_cost: _Least = 0.0
    rating_noise: _Least = 0.0


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """How a simulated user behaves.

    Attributes:
        name: as it is named on the command line.
        description: one line.
        gives_feedback: points out, unasked, what is wrong with the output.
        acts: tends to search and to edit the output itself. (On a model, every persona is offered to;
            this is in how it is described.)
        volunteers: tells what it knows without being asked, while the agent works.
        vague: share of questions that it waves away though it knows the answer.
        untold: wishes that it does not mention if the output shows nothing wrong.
        ambiguous: share of what it says that can be read in more than one way.
        mishears: share of questions that it takes for another one.
        overlooks: share of the further questions in a message that it leaves unanswered.
        contentment: share of what it wants at which it is satisfied.
        questions: share of its messages that begin with a question, and of its answers that end with one.
        queries: share of questions to which it first asks back what is meant.
        repeats: share of what it says of an output that is its last message once more.
        refuses: share of approvals and offers that it refuses without a visible reason.
        corrects: share of what is said about it and its work that it contradicts if it believes otherwise.
        complains: share of its messages after a round that it rates 1 or 2 that begin with a complaint.
        praises: share of its messages after a round that it rates 4 or 5 that begin with praise.
        asides: share of its other messages that begin with something beside the point.
        strictness: points that it takes off every rating; may be negative.
        effort_cost: points that a minute of reading and typing takes off the rating of a round.
        stamina: minutes of work without an agent after which it takes what there is.
        cognition: its limits; none by default.
    """

    name: str
    description: str
    gives_feedback: bool = True
    acts: bool = False
    volunteers: bool = False
    vague: _Share = 0.0
    untold: Annotated[int, msgspec.Meta(ge=0)] = 0
    ambiguous: _Share = 0.0
    mishears: _Share = 0.0
    overlooks: _Share = 0.25
    contentment: _Share = 1.0
    questions: _Share = 0.45
    queries: _Share = 0.1
    repeats: _Share = 0.04
    refuses: _Share = 0.1
    corrects: _Share = 0.3
    complains: _Share = 0.15
    praises: _Share = 0.25
    asides: _Share = 0.4
    strictness: float = 0.0
    effort_cost: _Least = 0.5
    stamina: _Above = 60.0
    cognition: Cognition = Cognition()

    @property
    def limited(self) -> bool:
        """Whether any of the mechanisms of its cognition is on."""
        return self.cognition != _UNLIMITED


_UNLIMITED = Cognition()


PERSONAS: Mapping[str, Persona] = {
    persona.name: persona
    for persona in (
        Persona(
            name="proactive",
            description="answers, gives feedback, adds what it knows, and edits the output itself",
            acts=True,
            volunteers=True,
            ambiguous=0.15,
            mishears=0.05,
        ),
        Persona(
            name="feedback",
            description="answers and gives feedback, but leaves the work to the agent",
            untold=1,
            ambiguous=0.2,
            mishears=0.1,
            stamina=45.0,
        ),
        Persona(
            name="lazy",
            description="answers when asked, often vaguely, and settles for less",
            gives_feedback=False,
            vague=0.4,
            ambiguous=0.3,
            mishears=0.15,
            overlooks=0.5,
            contentment=0.7,
            corrects=0.1,
            asides=0.1,
            stamina=15.0,
        ),
        Persona(
            name="bounded",
            description="like feedback, but skims, forgets, misreads, learns, and trusts by what it sees",
            vague=0.1,
            untold=1,
            ambiguous=0.2,
            mishears=0.1,
            queries=0.15,
            effort_cost=0.0,
            stamina=30.0,
            cognition=Cognition(
                attention=40.0,
                skims=0.28,
                memory=6.0,
                misreads=0.04,
                understanding=0.7,
                learns=0.2,
                trust=0.8,
                trust_loss=0.25,
                trust_gain=0.1,
                leniency=0.3,
                anchoring=0.2,
                reading_cost=0.5,
                rating_noise=0.5,
            ),
        ),
    )
}
"""The personas, by name."""


def find_persona(name: str) -> Persona:
    """The persona of a name, with the numbers that are set behind it.

    Args:
        name: e.g. ``lazy``, or ``bounded+memory=3+trust_loss=0.5``; ``none`` stands for no limit. Its
            persona carries the whole of it as its name.

    Raises:
        InvalidInput: there is no such persona, it has no such number, or the value does not fit.
    """
    base, *settings = name.split(_SETS)
    persona = PERSONAS.get(base)
    if persona is None:
        raise InvalidInput(f"unknown user {base!r}{suggestion(base, PERSONAS)}")
    if not settings:
        return persona
    given: dict[str, object] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InvalidInput(
                f"user {name!r}: {setting!r} sets nothing; write e.g. {base}+vague=0.2"
            )
        if key in given:
            raise InvalidInput(f"user {name!r} sets {key} twice")
        given[key] = None if value == "none" else value
    return msgspec.structs.replace(_changed(persona, given, f"user {name!r}"), name=name)


def read_persona(path: str) -> str:
    """The name, as ``find_persona`` takes it, of the persona in a file in TOML.

    The file names one of the personas as ``base``, and what is otherwise in this one:
    ``base = "bounded"``, ``memory = 3``; ``false`` stands for no limit.

    Raises:
        InvalidInput: there is no such file, it is no TOML, or ``find_persona`` refuses it.
    """
    content = read_settings(path)
    base = content.pop("base", None)
    if not isinstance(base, str) or base not in PERSONAS:
        known = ", ".join(PERSONAS)
        raise InvalidInput(f"{path}: base has to name a persona to start from, one of {known}")
    given = {
        key: None if value is False and key in _OPTIONAL else value
        for key, value in content.items()
    }
    persona = _changed(PERSONAS[base], given, str(path))
    before, now = _numbers(PERSONAS[base]), _numbers(persona)
    changed = [f"{key}={_written(now[key])}" for key in now if now[key] != before[key]]
    return _SETS.join([base, *changed])


def is_persona_file(name: str) -> bool:
    """Whether a user is named by a file that describes a persona."""
    return name.endswith(_FILE)


def plays(name: str, known: Container[str]) -> bool:
    """Whether a user is one of those that are known, perhaps with numbers set behind its name.

    Raises:
        InvalidInput: it is, and its numbers are not valid.
    """
    base, *settings = name.split(_SETS)
    if name in known or not settings or base not in known:
        return name in known
    find_persona(name)
    return True


_OWN = ("name", "description", "cognition")
_TYPES = {
    field.name: field.type
    for kind in (Persona, Cognition)
    for field in msgspec.structs.fields(kind)
    if field.name not in _OWN
}
_OPTIONAL = ("attention", "memory")


def _numbers(persona: Persona) -> dict[str, object]:
    """All that can be set of a persona, by name."""
    own = {**msgspec.structs.asdict(persona), **msgspec.structs.asdict(persona.cognition)}
    return {key: value for key, value in own.items() if key not in _OWN}


def _changed(persona: Persona, given: Mapping[str, object], who: str) -> Persona:
    """The persona with other numbers.

    Raises:
        InvalidInput: there is no such number, or its value does not fit.
    """
    own: dict[str, object] = {}
    limits: dict[str, object] = {}
    for key, value in given.items():
        if key not in _TYPES:
            raise InvalidInput(f"{who}: unknown key {key!r} in a persona{suggestion(key, _TYPES)}")
        try:
            fit = msgspec.convert(value, _TYPES[key], strict=False)
        except msgspec.ValidationError:
            said = "none" if value is None else value
            raise InvalidInput(f"{who}: {key} expects {_range(key)}, got {said}") from None
        (limits if key in Cognition.__struct_fields__ else own)[key] = fit
    cognition = msgspec.structs.replace(persona.cognition, **limits)
    return msgspec.structs.replace(persona, **own, cognition=cognition)


def _range(key: str) -> str:
    """The range of a number, in words."""
    kind = _TYPES[key]
    if kind is bool:
        return "true or false"
    if key == "untold":
        return "a whole number from 0"
    if key in _OPTIONAL:
        return "a number above 0, or none"
    if kind is float:
        return "a number"
    return "a number from 0 to 1" if kind == _Share else "a number from 0"


def _written(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()
