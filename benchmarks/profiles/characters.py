"""Agents of known character: a mind whose decisions are spoilt in one way that the framework names.

They are planted for a profile to find: as the rules of a task, or behind a server of models. ``good`` changes nothing.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias, final, get_args

import msgspec
from duolog.agents.mind import AgentMind, Intent
from duolog.agents.weak import Flatterer, Looper, Polisher
from duolog.engine.session.decisions import NOTHING, Decision, Finish, Note, Say, Verb
from duolog.engine.session.view import View
from duolog.engine.task import find_task
from duolog.tasks.kit import KitTask

__all__ = ("CHARACTERS", "Character", "Planted", "planted_task")

Character: TypeAlias = Literal[
    "good", "plateau", "loop", "early polish", "shifted", "opaque", "flood"
]
"""The character of a planted agent."""

CHARACTERS: Final[tuple[Character, ...]] = get_args(Character)
"""All of them."""

_DELEGATED: Final = (
    "That part is for you to settle. Could you look it up and put it into the draft yourself?",
    "I would rather not decide that. Can you work it out and write it down for me?",
    "You know this better than I do. Would you make that change in the draft yourself?",
    "Please go through the draft once more and correct what is wrong. What did you change?",
)
_FILLER: Final = (
    "There are of course many ways to look at this, and it is worth while to go over all of them "
    "again with some care before anything is settled. On the one hand one could take the view that "
    "the whole is more than its parts, and on the other hand each of the parts has a history of its "
    "own that deserves to be told from the beginning. In general, experts in the field have pointed "
    "out that much depends on the circumstances, that circumstances differ, and that it is wise to "
    "keep an open mind while the facts are gathered, compared and weighed against each other. "
)
_LONG: Final = 2  # times that the filler is added
_DONE: Final = 2  # outputs after which an agent that stops getting better changes nothing


@final
class Planted:
    """A mind that decides as another does, except for one flaw; alone it is without the flaw.

    Args:
        mind: what decides.
        character: the flaw.
    """

    def __init__(self, mind: AgentMind, character: Character) -> None:
        self._mind = mind
        self._character = character
        self._looper, self._polisher, self._flatterer = (
            Looper(mind),
            Polisher(mind),
            Flatterer(mind),
        )

    async def step(self, view: View, *, alone: bool) -> Decision:
        """The other's next step, spoilt."""
        if alone:
            return await self._mind.step(view, alone=True)
        taken = await self._taken(view)
        return (
            self._spoilt(await self._mind.step(view, alone=False), view) if taken is None else taken
        )

    async def plan(self, view: View) -> Intent:
        """The other's plan; to act if the flaw takes over."""
        if self._takes_over(view):
            return "act"
        return await self._mind.plan(view)

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        """The other's message, spoilt."""
        taken = await self._taken(view)
        return (
            self._spoilt(await self._mind.message(view, questions=questions), view)
            if taken is None
            else taken
        )

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        """The other's question."""
        return await self._mind.ask(view, questions=questions)

    async def report(self, view: View, *, final: bool) -> Decision:
        """The other's report, spoilt."""
        taken = await self._taken(view)
        if taken is not None:
            return taken
        return self._spoilt(await self._mind.report(view, final=final), view)

    async def act(self, view: View) -> Decision:
        """The other's action, spoilt."""
        taken = await self._taken(view)
        return self._spoilt(await self._mind.act(view), view) if taken is None else taken

    def estimate(self, view: View) -> float | None:
        """The other's estimate."""
        return self._mind.estimate(view)

    def _takes_over(self, view: View) -> bool:
        """Whether the flaw decides everything now."""
        outputs = _outputs(view)
        if self._character == "early polish":
            return True
        if self._character == "loop":
            return outputs > 0 and _human_last(view)
        if self._character == "plateau":
            return outputs >= _DONE
        return self._character == "shifted" and outputs > 0

    async def _taken(self, view: View) -> Decision | None:
        """The decision if the flaw takes over; else None."""
        if not self._takes_over(view):
            return None
        if self._character == "early polish":
            return await self._polisher.decide(view)
        if self._character == "loop":
            return await self._looper.decide(view)
        if self._character == "plateau":
            return await self._flatterer.decide(view)
        if view.in_flight or not _human_last(view):
            nudged = any(record.kind == "Nudged" for record in view.news)
            return Decision((Finish("there is nothing left to do"),)) if nudged else NOTHING
        said = sum(1 for message in view.messages if message.actor == view.me)
        return Decision((Say(_DELEGATED[said % len(_DELEGATED)]),))

    def _spoilt(self, decision: Decision, view: View) -> Decision:
        if self._character == "opaque":
            verbs = tuple(one for verb in decision.verbs for one in _unexplained(verb))
            work = any(not isinstance(verb, Note) for verb in verbs)
            return msgspec.structs.replace(decision, verbs=verbs if work else ())
        if self._character == "flood":
            return msgspec.structs.replace(decision, verbs=tuple(map(_flooded, decision.verbs)))
        return decision


def planted_task(name: str, character: Character) -> KitTask[object]:
    """A task whose rules for agents have a character.

    Args:
        name: the name of a task that ships with Duolog.
        character: the character of its agents.
    """
    task = find_task(name)
    if not isinstance(task, KitTask):
        raise TypeError(f"{name} is not composed of parts")
    made = task.spec.agent
    spec = msgspec.structs.replace(task.spec, agent=lambda habits: Planted(made(habits), character))
    return KitTask(spec)


def _outputs(view: View) -> int:
    return sum(1 for one in view.records if one.kind == "SnapshotTaken" and one.actor == view.me)


def _human_last(view: View) -> bool:
    return bool(view.messages) and view.messages[-1].role == "human"


def _unexplained(verb: Verb) -> tuple[Verb, ...]:
    """Only what asks something is said: not what was done, or why."""
    if not isinstance(verb, Say):
        return (verb,)
    asked = [part for part in re.split(r"(?<=[.!?])\s+", verb.text) if part.endswith("?")]
    return (Say(asked[-1], verb.to),) if asked else ()


def _flooded(verb: Verb) -> Verb:
    return Say(f"{_FILLER * _LONG}{verb.text}", verb.to) if isinstance(verb, Say) else verb
