"""How actors ask models: through their contexts, so that every attempt is in the log before it counts.

Waits are real; they hold the actor's turn and take no session time. In a simulation, the modelled
duration of the calls behind a decision takes session time instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from msgspec.structs import replace

from ...errors import ModelRefused
from ...session.actors import Actor, Policy, play
from ...session.context import ActorContext
from ...session.decisions import Decision, Wait
from ...session.view import View
from ..gateway import Models
from ..protocol import Asker, Caller, ModelReply, ModelRequest
from .attempts import RetryingCaller

__all__ = ("ActorCaller", "model_actor")


def model_actor(models: Models, make: Callable[[Caller], Policy]) -> Actor:
    """The actor that plays a policy whose mind asks models.

    The policy sees the view like any other. It receives its caller once, and that caller belongs to
    this actor in this session::

        Player(participant, model_actor(models, lambda caller: make_agent("auto", Mind(caller))))

    An agent's decision takes as long as the calls that led to it, unless it sets ``seconds``. A
    simulated user's decision takes as long as a human needs to read and type; model calls do not
    count.

    Args:
        models: shared by all sessions.
        make: the policy, given its caller.
    """

    async def actor(context: ActorContext) -> None:
        caller = ActorCaller(models, context)
        await play(context, _TimedPolicy(make(caller), caller))

    return actor


@final
class ActorCaller:
    """Asks models at one actor's context; see ``Caller``."""

    def __init__(self, models: Models, context: ActorContext) -> None:
        self._context = context
        self._seconds: float | None = None
        self._model = ""
        self._asking = RetryingCaller(
            models,
            context.models,
            Asker(context.session, context.name),
            seed=context.view.seed,
            latency=self._latency,
        )

    async def ask(self, request: ModelRequest, *, purpose: str) -> ModelReply:
        """Asks a model; see ``Caller``."""
        self._model = request.model
        reply = await self._asking.ask(request, purpose)
        taken = reply.latency if self._is_simulated() else 0.0  # on a real clock it has passed
        self._seconds = (self._seconds or 0.0) + taken
        return reply

    async def outlasts(self, error: ModelRefused) -> bool:
        """Whether to ask again although the model refuses; see ``Models``."""
        return await self._asking.outlasts(self._model, error)

    def take_seconds(self) -> float | None:
        """Session time spent on calls since the last time this was asked; None without calls."""
        seconds, self._seconds = self._seconds, None
        return seconds

    def _latency(self, reply: ModelReply) -> float:
        """The latency: modelled from the model's speed in a simulation, otherwise as measured."""
        if not self._is_simulated():
            return reply.latency
        written = reply.text + "".join(call.arguments for call in reply.tool_calls)
        return self._context.timing.calling(reply.tokens, written)

    def _is_simulated(self) -> bool:
        opened = self._context.view.opened
        return opened is None or opened.clock == "virtual"


@final
class _TimedPolicy:
    """A policy whose decisions take the time of the calls behind them."""

    def __init__(self, policy: Policy, caller: ActorCaller) -> None:
        self._policy = policy
        self._caller = caller

    async def decide(self, view: View) -> Decision:
        """The policy's decision, with its time filled in."""
        decision = await self._decide(view)
        seconds = self._caller.take_seconds()
        if seconds is None or view.role == "human" or decision.seconds is not None:
            return decision
        # To wait for news takes a verb here: a decision with a time and no verbs does not wait.
        return replace(decision, verbs=decision.verbs or (Wait(),), seconds=seconds)

    async def _decide(self, view: View) -> Decision:
        """The policy's decision; asks again if the request was refused but should be repeated."""
        while True:
            try:
                return await self._policy.decide(view)
            except ModelRefused as error:
                if not await self._caller.outlasts(error):
                    raise
