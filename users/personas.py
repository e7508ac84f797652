"""Personas of simulated users: what they are willing to do, and what contents them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..engine.errors import InvalidInput

__all__ = ("PERSONAS", "Persona", "find_persona")


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
        untold: wishes that it does not mention where the output shows nothing wrong.
        ambiguous: share of what it says that can be read in more than one way.
        mishears: share of questions that it takes for another one.
        contentment: share of what it wants at which it is satisfied.
    """

    name: str
    description: str
    gives_feedback: bool = True
    acts: bool = False
    volunteers: bool = False
    vague: float = 0.0
    untold: int = 0
    ambiguous: float = 0.0
    mishears: float = 0.0
    contentment: float = 1.0


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
        ),
        Persona(
            name="lazy",
            description="answers when asked, often vaguely, and settles for less",
            gives_feedback=False,
            vague=0.4,
            ambiguous=0.3,
            mishears=0.15,
            contentment=0.7,
        ),
    )
}
"""The personas, by name."""


def find_persona(name: str) -> Persona:
    """The persona of a name.

    Raises:
        InvalidInput: there is no such persona.
    """
    persona = PERSONAS.get(name)
    if persona is None:
        raise InvalidInput(f"there is no user {name!r}; there are: {', '.join(PERSONAS)}")
    return persona
