"""Makes an agent on a model; in a rehearsal, the task's rules give the model's replies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import final

from ..engine.events import Participant
from ..engine.models.clients.rehearsal import RuleReplies
from ..engine.models.model_player import model_player
from ..engine.models.prompting.conversation import ModelConversation
from ..engine.models.protocol import ModelReply
from ..engine.session.actors import Player
from ..engine.session.decisions import Decision, Say
from ..engine.session.view import View
from ..engine.task import Brief, Cell, Setting
from ..scoring.control_rules import ControlRules
from .habits import Habits
from .kinds import make_agent
from .mind import AgentMind, Intent
from .model_mind import ModelMind, prompt_digest

__all__ = ("model_agent",)


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
    name: str,
) -> Player:
    """An agent on a model; see ``players.agent_player``.

    Raises:
        InvalidInput: nothing reaches the model; or it is to be rehearsed, and there are no rules.
    """

    def mind(conversation: ModelConversation) -> AgentMind:
        return ModelMind(conversation, brief, habits)

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
        rehearsal=setting.rehearsal,
        rules=rules,
        rehearsed=_RehearsedAgent,
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

    async def message(self, view: View) -> Decision:
        self._replies.reply(lambda: _message(self._rules.message(view)))
        return await self._mind.message(view)

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
