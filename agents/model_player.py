"""Makes an agent on a model, or one on a model whose part the task's rules play."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import final

from ..engine.errors import InvalidInput
from ..engine.events import Participant
from ..engine.models.actor_caller import calling
from ..engine.models.ask import Considered, Interview, ModelUse
from ..engine.models.protocol import Caller, ModelReply, ModelRequest
from ..engine.models.rehearsal import Rehearsal, put
from ..engine.session.actors import Player, Policy
from ..engine.session.decisions import Decision, Say
from ..engine.session.view import View
from ..engine.task import Brief, Setting
from .kinds import make_agent
from .mind import AgentMind, Intent
from .model_mind import ModelMind, prompt_digest

__all__ = ("model_agent",)


def model_agent(
    session: str,
    kind: str,
    model: str,
    setting: Setting,
    *,
    brief: Brief,
    rules: Callable[[], AgentMind] | None,
    name: str,
) -> Player:
    """An agent on a model; see ``players.agent_player``.

    Raises:
        InvalidInput: nothing reaches the model; or it is to be rehearsed, and there are no rules.
    """
    use, rehearsal = setting.use(model), setting.rehearsal
    if rehearsal is not None and rules is None:
        raise InvalidInput(
            f"this task ships no rules for agents that could play the part of model {model!r}, so that "
            "nothing can be estimated"
        )

    def make(caller: Caller) -> Policy:
        interview = Interview(caller, use)
        mind: AgentMind = ModelMind(interview, brief)
        if rehearsal is not None and rules is not None:
            mind = _Rehearsed(mind, rules(), use, rehearsal, session, name)
        return Considered(make_agent(kind, mind), interview)

    participant = Participant(
        name=name, role="agent", policy=kind, model=model, prompt=prompt_digest(brief)
    )
    return Player(participant, calling(setting.reach(model), make))


@final
class _Rehearsed:
    """A mind on a model that is answered by rules, see ``Rehearsal``."""

    def __init__(
        self,
        mind: AgentMind,
        rules: AgentMind,
        use: ModelUse,
        rehearsal: Rehearsal,
        session: str,
        name: str,
    ) -> None:
        self._mind = mind
        self._rules = rules
        self._use = use
        self._next: Callable[[], Awaitable[ModelReply]] | None = None
        rehearsal.expect(session, name, self._answer)

    async def step(self, view: View, *, alone: bool) -> Decision:
        self._next = lambda: self._put(self._rules.step(view, alone=alone))
        return await self._mind.step(view, alone=alone)

    async def plan(self, view: View) -> Intent:
        async def planned() -> ModelReply:
            plans = {"message": 1, "act": 2, "wait": 3}
            return ModelReply(text=f"Plan: {plans[await self._rules.plan(view)]}")

        self._next = planned
        return await self._mind.plan(view)

    async def message(self, view: View) -> Decision:
        self._next = lambda: _said(self._rules.message(view))
        return await self._mind.message(view)

    async def report(self, view: View, *, final: bool) -> Decision:
        self._next = lambda: _said(self._rules.report(view, final=final))
        return await self._mind.report(view, final=final)

    async def act(self, view: View) -> Decision:
        self._next = lambda: self._put(self._rules.act(view))
        return await self._mind.act(view)

    async def _put(self, deciding: Awaitable[Decision]) -> ModelReply:
        return put((await deciding).verbs, as_text=self._use.text_actions)

    async def _answer(self, request: ModelRequest) -> ModelReply:
        if self._next is None:
            raise InvalidInput(f"{request.model!r} is asked before its mind was")
        return await self._next()


async def _said(deciding: Awaitable[Decision]) -> ModelReply:
    said = [verb.text for verb in (await deciding).verbs if isinstance(verb, Say)]
    return ModelReply(text=f"Message: {' '.join(said)}")
