"""Makes the agent of a session: on the rules of its task, or on a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..engine.errors import InvalidInput
from ..engine.events import Participant
from ..engine.session.actors import Player, playing_new
from ..engine.task import Brief, Cell, Setting
from ..scoring.control_rules import ControlRules
from .habits import USUAL, Habits
from .kinds import check_kind, make_agent
from .mind import AgentMind
from .settings import agent_settings

__all__ = ("agent_player",)


def agent_player(
    session: str,
    cell: Cell,
    setting: Setting,
    *,
    brief: Brief,
    rules: Callable[[Habits], AgentMind] | None = None,
    control: ControlRules | None = None,
    habits: Habits = USUAL,
    name: str = "agent",
) -> Player:
    """The agent of a cell's session.

    Args:
        session: session id.
        cell: says of what kind it is, and on which model, if on any.
        setting: says how the model is reached and asked; its ``agents`` play under their names.
        brief: describes the task to a model.
        rules: makes the rules that the task ships for agents, if it ships any.
        control: the rules of control that it ships for adaptive ones; None for the defaults.
        habits: that agents have in it, unless a variant has others.
        name: of the participant.

    Raises:
        InvalidInput: there is no such kind, neither a model nor rules, or nothing that reaches the
            model.
    """
    own = setting.agents.get(cell.agent)
    if own is not None:
        return Player(Participant(name=name, role="agent", policy=cell.agent), own.actor)
    check_kind(cell.kind)
    steering, had = agent_settings(cell, setting).over(control, habits)
    mind = None if rules is None else partial(rules, had)
    if cell.model is not None:
        from .model_player import model_agent  # rules need nothing of it

        return model_agent(
            session,
            cell,
            setting,
            model=cell.model,
            brief=brief,
            rules=mind,
            control=steering,
            habits=had,
            name=name,
        )
    if mind is None:
        raise InvalidInput("this task ships no rules for agents: name a model")
    participant = Participant(name=name, role="agent", policy=cell.agent)
    return Player(participant, playing_new(lambda: make_agent(cell.kind, mind(), steering)))
