"""The actor of an external agent: its connection, and the program that lives as long as the actor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias, final

from ...engine.errors import ContextError, InvalidInput
from ...engine.models.calls.actor_caller import model_actor
from ...engine.models.gateway import Models, Terms
from ...engine.models.prompting.conversation import ModelConversation, ModelPolicy, ModelUse
from ...engine.models.protocol import Asker, Caller, ModelReply, ModelRequest
from ...engine.models.traffic.retry import Retry
from ...engine.session.actors import Actor, Policy
from ...engine.session.context import ActorContext
from ...engine.session.decisions import Decision
from ...engine.session.view import View
from ...engine.task import Brief
from ..kinds import OneStage
from ..model_mind import ModelMind
from .acp_agent import AcpAgent
from .acp_policy import AcpPolicy
from .address import Address, check_command, read_address
from .endpoint import Endpoint, EndpointAgent
from .line_policy import LinePolicy
from .lines import LineAgent
from .surroundings import check_names

__all__ = ("TIMEOUT", "ExternalAgent", "external_agent")

TIMEOUT: Final = 300.0
"""Seconds of wall time that an external agent has to answer, unless it is given another limit."""

_ATTEMPTS = 3
_RETRY = Retry(attempts=_ATTEMPTS, first=0.2, longest=10.0)


class _Program(Protocol):
    """Answers for one actor in one session."""

    async def complete(self, request: ModelRequest) -> ModelReply: ...

    async def close(self) -> None: ...


@final
class _Programs:
    """The client that has each actor's own program answer."""

    def __init__(self) -> None:
        self._running: dict[Asker | None, _Program] = {}

    def put(self, asker: Asker, program: _Program) -> None:
        self._running[asker] = program

    async def remove(self, asker: Asker) -> None:
        await self._running.pop(asker).close()

    async def complete(self, request: ModelRequest) -> ModelReply:
        program = self._running.get(request.asker)
        if program is None:
            raise InvalidInput("an external agent has to know who asks; ask through a caller")
        return await program.complete(request)


@final
class _Strict:
    """A policy that fails if no reply could be used. A program that writes unreadable replies is
    broken, and its session must not look like one of an agent that had nothing to say.
    """

    def __init__(self, policy: Policy, conversation: ModelConversation) -> None:
        self._policy = policy
        self._conversation = conversation

    async def decide(self, view: View) -> Decision:
        decision = await self._policy.decide(view)
        if self._conversation.gave_up is not None:
            raise ContextError(self._conversation.gave_up)
        return decision


@final
class ExternalAgent:
    """An external agent, for all sessions that it takes part in.

    Its replies are recorded as those of models are, before anything that follows from them; so a
    session resumes, and forks, without asking it again for what it has said.

    Args:
        address: its address.
        timeout: seconds of wall time that it has to answer.
        passed: names of environment variables that its program gets.
    """

    def __init__(
        self, address: Address, *, timeout: float = TIMEOUT, passed: Sequence[str] = ()
    ) -> None:
        self.address = address
        self._make = _maker(address, passed)
        self._programs = _Programs()
        self._models = Models(self._programs, terms=Terms(timeout=timeout, retry=_RETRY))

    def actor(self, brief: Brief) -> Actor:
        """The actor that plays it in a task.

        Args:
            brief: describes the task to the agent.
        """
        use = ModelUse(model=self.address.name)

        async def actor(context: ActorContext) -> None:
            asker = Asker(context.session, context.name)
            program, policy = self._make(context.view, brief)

            def make(caller: Caller) -> Policy:
                conversation = ModelConversation(caller, use)
                return ModelPolicy(_Strict(policy(conversation), conversation), conversation)

            self._programs.put(asker, program)
            try:
                await model_actor(self._models, make)(context)
            finally:
                await self._programs.remove(asker)

        return actor


def external_agent(
    text: str, *, timeout: float = TIMEOUT, passed: Sequence[str] = ()
) -> ExternalAgent:
    """The external agent at an address; see ``read_address``.

    Args:
        text: the address.
        timeout: seconds of wall time that it has to answer.
        passed: names of environment variables that its program gets in addition to what every program needs.

    Raises:
        InvalidInput: the address is not valid, there is no such program, or a name is not passed on.
    """
    address = read_address(text)
    if address.command:
        check_command(address.command)
    return ExternalAgent(address, timeout=timeout, passed=check_names(passed))


_Made: TypeAlias = tuple[_Program, Callable[[ModelConversation], Policy]]
"""The program that answers for one actor in one session, and the policy that asks it."""


def _maker(address: Address, passed: Sequence[str]) -> Callable[[View, Brief], _Made]:
    """Makes both for an actor."""
    if address.protocol == "openai":
        endpoint = Endpoint(address)
        return lambda view, brief: (
            EndpointAgent(endpoint),
            lambda asked: OneStage(ModelMind(asked, brief, speaks=True)),
        )
    if address.protocol == "acp":
        return lambda view, brief: (
            AcpAgent(address, view, brief, passed),
            lambda asked: AcpPolicy(asked, brief),
        )
    return lambda view, brief: (
        LineAgent(address, view, passed),
        lambda asked: LinePolicy(asked, brief),
    )
