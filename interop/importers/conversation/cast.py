"""Who takes part in a foreign conversation, and under which names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, final

from ....engine.events import Participant, Role
from .steps import (
    AGENT,
    HUMAN,
    ApprovalRequest,
    ApprovalResponse,
    Feedback,
    Interruption,
    ModelUse,
    Output,
    Reasoning,
    Step,
    ToolCall,
    Utterance,
)

__all__ = ("Cast",)

_ROLES: Final[Mapping[str, Role]] = {HUMAN: "human", AGENT: "agent"}


@final
class Cast:
    """Who takes part, by role and name; each has one name in the session.

    Args:
        steps: of the whole conversation. The first agent that acts is the main one.
        sides: ``user`` or ``assistant``, who takes part even without a word.
    """

    def __init__(self, steps: Iterable[Step], sides: Iterable[str] = ()) -> None:
        self._names: dict[tuple[str, str | None], str] = {}
        self._settled = 0
        for step in steps:
            self._add(step)
        for side in sides:
            if all(role != side for role, _ in self._names):
                self._names[side, None] = side
        self._settle()

    def extend(self, steps: Iterable[Step]) -> None:
        """Takes up who acts in further steps; who is known keeps the name."""
        for step in steps:
            self._add(step)
        self._settle()

    def join(self, actor: str, role: Role) -> None:
        """Takes up somebody who is known from a session that was recorded."""
        side = next((side for side, whose in _ROLES.items() if whose == role), None)
        if side is None or actor in self._names.values():
            return
        name = actor.removesuffix(f" ({side})")
        self._names.setdefault((side, None if name == side else name), actor)
        self._settled = len(self._names)

    def _settle(self) -> None:
        """Makes new names unique."""
        items = list(self._names.items())
        seen = {name for _, name in items[: self._settled]}
        for key, name in items[self._settled :]:
            unique = name if name not in seen else f"{name} ({key[0]})"
            while unique in seen:
                unique += "'"
            seen.add(unique)
            self._names[key] = unique
        self._settled = len(items)

    def participants(
        self, *, models: Mapping[str, str | None], policies: Mapping[str, str | None]
    ) -> tuple[Participant, ...]:
        """The participants; models and policies by ``user`` and ``assistant``, or by the name of
        somebody, which counts before the side.
        """
        return tuple(
            Participant(
                name=name,
                role=_ROLES[role],
                model=models.get(name, models.get(role)),
                policy=policies.get(name, policies.get(role)),
            )
            for (role, _), name in self._names.items()
        )

    def of(self, role: str, name: str | None = None) -> tuple[str, Role]:
        """Name and role of somebody; ``system`` and the like belong to the environment."""
        if role not in _ROLES:
            return name or role, "environment"
        return self._names.get((role, name), name or role), _ROLES[role]

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of the agents."""
        return tuple(name for (role, _), name in self._names.items() if role == AGENT)

    def _add(self, step: Step) -> None:
        match step:
            case (
                Utterance(role=role, name=name)
                | ToolCall(role=role, name=name)
                | Output(role=role, name=name)
                | ModelUse(role=role, name=name)
            ):
                if role in _ROLES:
                    self._names.setdefault((role, name), name or role)
            case Reasoning(name=name) | ApprovalRequest(name=name) | Interruption(name=name):
                self._names.setdefault((AGENT, name), name or AGENT)
            case ApprovalResponse():
                self._names.setdefault((HUMAN, None), HUMAN)
            case Feedback(name=name):
                self._names.setdefault((HUMAN, name), name or HUMAN)
            case _:
                pass
