"""Episodes for tests: a bouquet is made by an agent that is played from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from duolog.engine.events import JSON
from duolog.engine.models.protocol import ToolCall
from duolog.train.episode import Episode
from duolog.train.seat import Observation
from toy_task import bouquet_task

BOUQUET = bouquet_task()

FLORIST: Sequence[tuple[str, Mapping[str, JSON]]] = (
    ("message", {"text": "Which flowers do you like?"}),
    ("Count", {"flower": "rose"}),
    ("submit", {"content": "rose"}),
    ("message", {"text": "A rose it is. What do you think?"}),
    ("submit", {"content": "rose, tulip, lily"}),
    ("message", {"text": "Which flowers do you like?"}),
    ("wait", {}),
    ("finish", {}),
)
"""A florist's acts, in order."""


def call(name: str, arguments: Mapping[str, JSON] | None = None, id: str = "c") -> ToolCall:
    return ToolCall(id=id, name=name, arguments=msgspec.json.encode(arguments or {}).decode())


async def plays(
    episode: Episode,
    problem: str = "0",
    *,
    persona: str = "proactive",
    seed: int = 5,
    acts: Sequence[tuple[str, Mapping[str, JSON]]] = FLORIST,
) -> list[Observation]:
    """Plays an episode to its end; what was observed."""
    seen = [await episode.reset(BOUQUET, problem, persona=persona, seed=seed)]
    for number, (name, arguments) in enumerate(acts):
        if seen[-1].done:
            break
        seen.append(await episode.step(call(name, arguments, f"c{number}")))
    return seen
