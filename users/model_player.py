"""Makes a simulated user on a model, or one on a model whose part the task's rules play."""

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
from ..engine.session.decisions import Decision, Rate, Say
from ..engine.session.view import View
from ..engine.task import Brief, Setting
from .model_mind import ModelUserMind, prompt_digest, titles
from .personas import Persona
from .simulated import SimulatedUser, UserIntent, UserMind

__all__ = ("model_user",)


def model_user(
    session: str,
    persona: Persona,
    model: str,
    setting: Setting,
    *,
    brief: Brief,
    rules: Callable[[], UserMind] | None,
    name: str,
) -> Player:
    """A simulated user on a model; see ``players.user_player``.

    Raises:
        InvalidInput: nothing reaches the model; or it is to be rehearsed, and there are no rules.
    """
    use, rehearsal = setting.use(model), setting.rehearsal
    if rehearsal is not None and rules is None:
        raise InvalidInput(
            f"this task ships no rules for users that could play the part of model {model!r}, so that "
            "nothing can be estimated"
        )

    def make(caller: Caller) -> Policy:
        interview = Interview(caller, use)
        mind: UserMind = ModelUserMind(interview, brief)
        if rehearsal is not None and rules is not None:
            mind = _Rehearsed(mind, rules(), use, rehearsal, session, name)
        return Considered(SimulatedUser(mind, persona), interview)

    participant = Participant(
        name=name,
        role="human",
        policy="model",
        model=model,
        persona=persona.name,
        prompt=prompt_digest(brief),
    )
    return Player(participant, calling(setting.reach(model), make))


@final
class _Rehearsed:
    """A mind on a model that is answered by rules, see ``Rehearsal``."""

    def __init__(
        self,
        mind: UserMind,
        rules: UserMind,
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

    async def choose(self, view: View, persona: Persona) -> UserIntent:
        async def chosen() -> ModelReply:
            intent = await self._rules.choose(view, persona)
            return ModelReply(text=titles(view, persona).get(intent, "Do nothing"))

        self._next = chosen
        return await self._mind.choose(view, persona)

    async def compose(self, view: View, persona: Persona, intent: UserIntent) -> Decision:
        async def composed() -> ModelReply:
            decision = await self._rules.compose(view, persona, intent)
            said = [verb.text for verb in decision.verbs if isinstance(verb, Say)]
            if intent in ("answer", "feedback"):
                return ModelReply(text=" ".join(said) or "Fine.")
            return put(decision.verbs, as_text=self._use.text_actions)

        self._next = composed
        return await self._mind.compose(view, persona, intent)

    async def rate(self, view: View, persona: Persona) -> Rate | None:
        async def rated() -> ModelReply:
            rating = await self._rules.rate(view, persona)
            return ModelReply(text="3" if rating is None else str(rating.rating))

        self._next = rated
        return await self._mind.rate(view, persona)

    async def _answer(self, request: ModelRequest) -> ModelReply:
        if self._next is None:
            raise InvalidInput(f"{request.model!r} is asked before its mind was")
        return await self._next()
