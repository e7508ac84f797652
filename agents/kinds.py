"""The kinds of agent, on any mind: rules, or a model; the first three are the paper's (4.1, A).

- ``auto`` takes task actions only; it works from the request alone, and finishes by itself.
- ``one-stage`` has two more things to do, in the same single step: message the teammate, and wait.
- ``two-stage`` first decides whether to message, to act or to wait, and then composes just that.
- ``careful`` is a one-stage agent that asks for leave before what cannot be undone.
- ``adaptive`` does as a two-stage agent does, and lets what the human's effort has brought so far decide who leads.
- ``looper``, ``polisher`` and ``flatterer`` are weak, see ``weak``.

A mind says what to do; a kind says when it is asked for what, and so how agents differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final

from ..engine.errors import InvalidInput
from ..engine.session.actors import Policy
from ..engine.session.decisions import NOTHING, Decision
from ..engine.session.view import View
from ..engine.text import suggestion
from ..scoring.control_rules import ControlRules
from .adaptive import Adaptive
from .careful import Careful
from .mind import AgentMind
from .weak import Flatterer, Looper, Polisher

__all__ = (
    "KINDS",
    "Auto",
    "OneStage",
    "TwoStage",
    "check_kind",
    "make_agent",
)


@final
class Auto:
    """The automated agent: task actions only."""

    def __init__(self, mind: AgentMind) -> None:
        self._mind = mind

    async def decide(self, view: View) -> Decision:
        """One step, without teammates."""
        return await self._mind.step(view, alone=True)


@final
class OneStage:
    """The one-stage collaborating agent: acts, messages and waits, all decided in one step."""

    def __init__(self, mind: AgentMind) -> None:
        self._mind = mind

    async def decide(self, view: View) -> Decision:
        """One step, with teammates."""
        return await self._mind.step(view, alone=False)


@final
class TwoStage:
    """The two-stage collaborating agent: decides first whether to message, act or wait."""

    def __init__(self, mind: AgentMind) -> None:
        self._mind = mind

    async def decide(self, view: View) -> Decision:
        """The planning stage, then the composing stage."""
        intent = await self._mind.plan(view)
        if intent == "message":
            return await self._mind.message(view)
        if intent == "act":
            return await self._mind.act(view)
        return NOTHING


KINDS: Mapping[str, str] = {
    "auto": "plans from the request alone, and finishes: the automated baseline",
    "one-stage": "works, asks and reacts as it goes, one step at a time",
    "two-stage": "first decides whether to ask, to act or to wait, then does that",
    "careful": "works as one-stage does, and asks before it does what cannot be undone",
    "adaptive": "asks, acts, or leaves the lead to the human, by what their effort brings",
    "looper": "a weak agent: once it is criticised, it does the same again",
    "polisher": "a weak agent: puts up an output at once, and polishes it without a reason",
    "flatterer": "a weak agent: agrees with everything, and changes nothing",
}
"""Kinds of agent, each with a line on what it does."""


def check_kind(kind: str) -> None:
    """Checks the name of a kind of agent.

    Raises:
        InvalidInput: there is no such kind.
    """
    if kind not in KINDS:
        raise InvalidInput(f"unknown agent {kind!r}{suggestion(kind, KINDS)}")


def make_agent(kind: str, mind: AgentMind, rules: ControlRules | None = None) -> Policy:
    """An agent of a kind.

    Args:
        kind: of agent.
        mind: makes its decisions.
        rules: the numbers in the rules by which an adaptive agent is advised; None for the defaults.

    Raises:
        InvalidInput: there is no such kind.
    """
    check_kind(kind)
    return Adaptive(mind, rules) if kind == "adaptive" else _MAKERS[kind](mind)


_MAKERS: Mapping[str, Callable[[AgentMind], Policy]] = {
    "auto": Auto,
    "one-stage": OneStage,
    "two-stage": TwoStage,
    "careful": lambda mind: Careful(OneStage(mind)),
    "looper": Looper,
    "polisher": Polisher,
    "flatterer": Flatterer,
}
