"""Rehearsals: the task's rules answer in place of the models, with an estimate of the cost.

Model-backed minds send exactly the requests that they would send to a model. The replies contain the
rules' decisions, in a model's format. So calls and prompts are real; only completions are estimated.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, final

import msgspec

from ..errors import InvalidInput
from ..events import JSON, Tokens
from ..session.decisions import Act, Approve, Decision, Finish, Note, Say, Submit, Verb, Wait
from .prompting.prompt_context import CHARACTERS_PER_TOKEN
from .protocol import Asker, ModelReply, ModelRequest, ToolCall

__all__ = (
    "Answer",
    "Price",
    "Rehearsal",
    "RuleReplies",
    "encode_verbs",
)


Answer: TypeAlias = Callable[[ModelRequest], Awaitable[ModelReply]]
"""Replies to a request by an actor's rules."""

Price: TypeAlias = Callable[[str, int, int], float | None]
"""US dollars for a model, prompt tokens and completion tokens; None if unknown."""

_RATING = "3"  # the reply to judges, which rules do not play

THINKING = 60
"""Estimated completion tokens that a model spends on thoughts, in addition to its decision."""


@final
class Rehearsal:
    """A client that reaches no model.

    Args:
        price: what calls would cost.
    """

    def __init__(self, *, price: Price = lambda model, prompt, completion: None) -> None:
        self._price = price
        self._answers: dict[Asker, Answer] = {}

    def expect(self, session: str, actor: str, answer: Answer) -> None:
        """From now on, these rules answer an actor's requests."""
        self._answers[Asker(session, actor)] = answer

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The rules' reply, with estimated tokens and cost.

        Raises:
            InvalidInput: the request does not say who asks.
        """
        if request.asker is None:
            raise InvalidInput("a rehearsal has to know who asks; ask through a caller")
        answer = self._answers.get(request.asker)
        reply = ModelReply(text=_RATING) if answer is None else await answer(request)
        written = reply.text + "".join(call.name + call.arguments for call in reply.tool_calls)
        completion = _tokens(len(written)) + THINKING
        asked = msgspec.json.encode([request.messages, request.tools])
        prompt = _tokens(len(asked.decode()))
        return msgspec.structs.replace(
            reply,
            finish="tool_calls" if reply.tool_calls else "stop",
            tokens=Tokens(prompt=prompt, completion=completion),
            cost=self._price(request.model, prompt, completion),
        )


@final
class RuleReplies:
    """The replies to one actor's requests in a rehearsal: its rules' decisions, set call by call.

    Args:
        rehearsal: answers the actor's requests from now on.
        session: session id.
        actor: the actor that asks.
        as_text: whether actions are written as ReAct text, instead of tool calls.
        parts: the form in which models give an output, in place of its text; None for the text.
    """

    def __init__(
        self,
        rehearsal: Rehearsal,
        session: str,
        actor: str,
        *,
        as_text: bool,
        parts: Callable[[str], JSON] | None = None,
    ) -> None:
        self._as_text = as_text
        self._parts = parts
        self._next: Callable[[], Awaitable[ModelReply]] | None = None
        rehearsal.expect(session, actor, self._answer)

    def reply(self, reply: Callable[[], Awaitable[ModelReply]]) -> None:
        """Sets how the requests from now on are answered."""
        self._next = reply

    def decide(self, decide: Callable[[], Awaitable[Decision]]) -> None:
        """Sets that the requests from now on are answered with the verbs of a decision."""

        async def decided() -> ModelReply:
            verbs = (await decide()).verbs
            if self._parts is not None:
                verbs = tuple(_in_parts(verb, self._parts) for verb in verbs)
            return encode_verbs(verbs, as_text=self._as_text)

        self._next = decided

    async def _answer(self, request: ModelRequest) -> ModelReply:
        if self._next is None:
            raise InvalidInput(f"{request.model!r} is asked before its mind was")
        return await self._next()


def _in_parts(verb: Verb, parts: Callable[[str], JSON]) -> Verb:
    if isinstance(verb, Submit) and isinstance(verb.content, str):
        return msgspec.structs.replace(verb, content=parts(verb.content))
    return verb


def _tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


def encode_verbs(verbs: Sequence[Verb], *, as_text: bool) -> ModelReply:
    """Verbs as a model would write them: the inverse of reading them from an ``ActionSpace``.

    Args:
        verbs: the verbs of the decision; none to wait.
        as_text: as ReAct text, instead of tool calls.

    Raises:
        InvalidInput: a verb that models are not offered.
    """
    named = [_named(verb) for verb in verbs] or [("wait", {})]
    if as_text:
        items = [{"name": name, "arguments": arguments} for name, arguments in named]
        action = json.dumps(items[0] if len(items) == 1 else items)
        return ModelReply(text=f"Thought: This is next.\nAction: {action}")
    calls = tuple(
        ToolCall(id=f"call_{number}", name=name, arguments=json.dumps(arguments))
        for number, (name, arguments) in enumerate(named, start=1)
    )
    return ModelReply(text="This is next.", tool_calls=calls)


def _named(verb: Verb) -> tuple[str, dict[str, JSON]]:
    match verb:
        case Act():
            return verb.name, dict(verb.arguments)
        case Submit():
            return "submit", {"content": verb.content}
        case Say():
            return "message", {"text": verb.text}
        case Note():
            return "note", {"text": verb.text}
        case Approve():
            return "approve", {"approved": verb.approved, "comment": verb.comment}
        case Wait():
            return "wait", {}
        case Finish():
            return "finish", {}
    raise InvalidInput(f"models are not offered to {type(verb).__name__}")
