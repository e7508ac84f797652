"""A caller that answers from a list and remembers what it was asked: for tests of minds and judges."""

from __future__ import annotations

from collections.abc import Iterable

from duolog.engine.errors import ModelError
from duolog.engine.models import ModelReply, ModelRequest, ToolCall
from duolog.engine.models.prompting.conversation import ModelConversation, ModelUse


class Answers:
    """Answers in order; a text is a reply, an error is raised.

    Attributes:
        requests: what was asked.
        purposes: what for.
    """

    def __init__(self, *answers: ModelReply | ModelError | str) -> None:
        self._left = list(answers)
        self.requests: list[ModelRequest] = []
        self.purposes: list[str] = []

    async def ask(self, request: ModelRequest, *, purpose: str) -> ModelReply:
        self.requests.append(request)
        self.purposes.append(purpose)
        answer = self._left.pop(0)
        if isinstance(answer, ModelError):
            raise answer
        return ModelReply(text=answer) if isinstance(answer, str) else answer

    @property
    def prompts(self) -> list[str]:
        """All that was asked, a text for each request."""
        return ["\n".join(m.content for m in request.messages) for request in self.requests]


def conversation(answers: Answers, use: ModelUse | None = None) -> ModelConversation:
    return ModelConversation(answers, use or ModelUse(model="m"))


def calls(*named: tuple[str, str]) -> ModelReply:
    """A reply that calls tools: names, and arguments as JSON."""
    made: Iterable[ToolCall] = (
        ToolCall(id=f"c{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(named)
    )
    return ModelReply(tool_calls=tuple(made))
