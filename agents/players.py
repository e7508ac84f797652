"""Makes the agent of a session: on the rules of its task, or on a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, final

from ..engine.errors import InvalidInput
from ..engine.events import Participant
from ..engine.models.model_player import model_player
from ..engine.models.prompting.conversation import ModelConversation
from ..engine.models.protocol import ModelReply
from ..engine.models.rehearsal import RuleReplies
from ..engine.session.actors import Player, playing_new
from ..engine.session.decisions import Decision, Say
from ..engine.session.view import View
from ..engine.task import Brief, Cell, Setting
from ..scoring.control_rules import ControlRules
from .habits import USUAL, Habits
from .kinds import check_kind, make_agent
from .mind import AgentMind, Intent
from .model_mind import ModelMind, agent_messages, habit_lines, prompt_digest
from .settings import agent_settings

__all__ = ("Judged", "agent_player")

Judged: TypeAlias = Callable[[AgentMind, ModelConversation], AgentMind]
"""Puts a judge behind the mind of an agent on a model, which reads what the agent says."""


def agent_player(
    session: str,
    cell: Cell,
    setting: Setting,
    *,
    brief: Brief,
    rules: Callable[[Habits], AgentMind] | None = None,
    control: ControlRules | None = None,
    habits: Habits = USUAL,
    judged: Judged | None = None,
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
        judged: what the task does with the mind of an agent on a model, if anything.
        name: the name of the participant.

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
        from .players import model_agent  # rules need nothing of it

        return model_agent(
            session,
            cell,
            setting,
            model=cell.model,
            brief=brief,
            rules=mind,
            control=steering,
            habits=had,
            judged=judged,
            name=name,
        )
    if mind is None:
        raise InvalidInput("this task ships no rules for agents: name a model")
    participant = Participant(name=name, role="agent", policy=cell.agent)
    return Player(participant, playing_new(lambda: make_agent(cell.kind, mind(), steering)))


# --- makes an agent on a model --------------------------------------------------------------------


def model_agent(
    session: str,
    cell: Cell,
    setting: Setting,
    *,
    model: str,
    brief: Brief,
    rules: Callable[[], AgentMind] | None,
    control: ControlRules,
    habits: Habits,
    judged: Judged | None,
    name: str,
) -> Player:
    """An agent on a model; see ``players.agent_player``.

    Raises:
        InvalidInput: nothing reaches the model; or it is to be rehearsed, and there are no rules.
    """

    def mind(conversation: ModelConversation) -> AgentMind:
        mind = ModelMind(conversation, brief, habits)
        return mind if judged is None else judged(mind, conversation)

    return model_player(
        Participant(
            name=name,
            role="agent",
            policy=cell.agent,
            model=model,
            prompt=prompt_digest(brief, habits),
        ),
        session,
        setting.reach(model),
        setting.use(model),
        mind=mind,
        policy=partial(make_agent, cell.kind, rules=control),
        compose=lambda: partial(agent_messages, brief, habit_lines(habits)),
        rehearsal=setting.rehearsal,
        rules=rules,
        rehearsed=_RehearsedAgent,
        parts=None if brief.form is None else brief.form.read,
    )


@final
class _RehearsedAgent:
    """An agent's mind on a model whose replies are what rules decide."""

    def __init__(self, mind: AgentMind, rules: AgentMind, replies: RuleReplies) -> None:
        self._mind = mind
        self._rules = rules
        self._replies = replies

    async def step(self, view: View, *, alone: bool) -> Decision:
        self._replies.decide(lambda: self._rules.step(view, alone=alone))
        return await self._mind.step(view, alone=alone)

    async def plan(self, view: View) -> Intent:
        async def planned() -> ModelReply:
            plans = {"message": 1, "act": 2, "wait": 3}
            return ModelReply(text=f"Plan: {plans[await self._rules.plan(view)]}")

        self._replies.reply(planned)
        return await self._mind.plan(view)

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        self._replies.reply(lambda: _message(self._rules.message(view, questions=questions)))
        return await self._mind.message(view, questions=questions)

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        return await self._mind.ask(view, questions=questions)

    async def report(self, view: View, *, final: bool) -> Decision:
        self._replies.reply(lambda: _message(self._rules.report(view, final=final)))
        return await self._mind.report(view, final=final)

    def estimate(self, view: View) -> float | None:
        return self._mind.estimate(view)

    async def act(self, view: View) -> Decision:
        self._replies.decide(lambda: self._rules.act(view))
        return await self._mind.act(view)


async def _message(deciding: Awaitable[Decision]) -> ModelReply:
    texts = [verb.text for verb in (await deciding).verbs if isinstance(verb, Say)]
    return ModelReply(text=f"Message: {' '.join(texts)}")
