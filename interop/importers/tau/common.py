"""What τ-bench and τ²-bench have in common: how a run is turned into a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ....engine import codec
from ....engine.errors import InvalidInput
from ....engine.events import JSON, ScorerRef, UtilityScored
from ..chat.steps import Item, steps_of
from ..conversation.numbers import share_of
from ..conversation.steps import Step, Utterance
from ..protocol import Remark

__all__ = (
    "SATISFIED",
    "SCORER",
    "SIMULATED",
    "Turn",
    "rated",
    "reward_of",
    "turns_of",
    "without_policy",
)

SCORER: Final = ScorerRef(name="tau", version="1", config=codec.digest({"value": "reward"}))
"""The reward as the benchmark computed it."""

SATISFIED: Final = "###STOP###"
"""What the simulated user is told to say once its goal is satisfied, and for no other reason. It has
other marks for being handed on, and for what its instructions do not cover."""

SIMULATED: Final = "simulated"
"""What decides for the user, where no more is known of it: it is always a program."""


class Turn(NamedTuple):
    """A message: its place from 1, as it stands, and its steps."""

    number: int
    item: Item
    steps: Sequence[Step]


def turns_of(items: Sequence[Item], where: str, session: str) -> Iterator[Turn | Remark]:
    """The messages of a run; a remark where one is none."""
    for index, item in enumerate(items, start=1):
        try:
            yield Turn(index, item, list(steps_of(item)))
        except InvalidInput as error:
            place = f"{where}, message {index}"
            yield Remark("problem", f"no message: {error}", place, session)


def without_policy(turns: Sequence[Turn]) -> tuple[str | None, Sequence[Turn]]:
    """The policy, which the agent was given as the first message; and the rest."""
    first = turns[0].steps if turns else ()
    if len(first) == 1 and isinstance(first[0], Utterance) and first[0].role == "system":
        return first[0].text, turns[1:]
    return None, turns


def rated(parts: Mapping[str, JSON]) -> dict[str, float | None]:
    """Named parts of a reward, those that are numbers."""
    return {
        name: share_of(value)
        for name, value in parts.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def reward_of(
    value: JSON, parts: Mapping[str, float | None], broken: str | None = None
) -> UtilityScored:
    """A reward as a utility; missing where the run broke off, or there is none in [0, 1]."""
    if broken is not None:
        return UtilityScored(scorer=SCORER, missing=broken)
    found = share_of(value)
    missing = None
    if found is None:
        said = msgspec.json.encode(value).decode()
        missing = "there is no reward" if value is None else f"the reward {said} is not in [0, 1]"
    return UtilityScored(scorer=SCORER, value=found, parts=parts, missing=missing)
