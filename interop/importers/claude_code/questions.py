"""Questions that Claude Code asks a person through a tool, and calls that the person refuses.

The texts are Claude Code's. Other formats hold its conversations too: messages and traces of it.
The call and its result stay an action and its outcome. The question and the answer become an approval as
well, since a person decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, final

from ....engine.events import JSON
from ..conversation.steps import ApprovalRequest, ApprovalResponse, Step, ToolCall, ToolResult

__all__ = ("QuestionReader",)

_ASKING: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
_REFUSED: Final = "The user doesn't want to"
_SAID: Final = "the user said:\n"
_ANSWERED: Final = "User has answered your questions: "


@final
class QuestionReader:
    """Adds questions and answers to the steps of a conversation."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}

    def is_open(self, call: str) -> bool:
        """Whether a call was read, and its result was not."""
        return call in self._calls

    def read(self, steps: Iterable[Step], kept: JSON = None) -> Iterator[Step]:
        """The same steps, with the questions and answers among them.

        Args:
            steps: the steps of the next message, in order.
            kept: the program's record of a result, such as the separate answers.
        """
        for step in steps:
            if isinstance(step, ToolCall):
                yield step
                self._calls[step.call] = step
                if step.tool in _ASKING:
                    yield _question(step)
            elif isinstance(step, ToolResult):
                yield from self._result(step, kept)
            else:
                yield step

    def _result(self, result: ToolResult, kept: JSON) -> Iterator[Step]:
        call = self._calls.pop(result.call, None)
        text = result.output if isinstance(result.output, str) else ""
        refused = text.startswith(_REFUSED)
        if call is None:
            yield result
        elif refused:
            if call.tool not in _ASKING:
                yield _question(call)
            yield result if result.error else ToolResult(result.call, result.output, text)
            _, _, comment = text.partition(_SAID)
            yield ApprovalResponse(call.call, False, comment.strip(), "person")
        else:
            yield result
            if call.tool in _ASKING and result.error is None:
                yield ApprovalResponse(call.call, True, _answers(kept, text), "person")


def _question(call: ToolCall) -> ApprovalRequest:
    text = call.arguments.get("plan")
    asked = call.arguments.get("questions")
    if isinstance(asked, Sequence) and not isinstance(asked, str):
        texts = [one.get("question") for one in asked if isinstance(one, Mapping)]
        text = "\n".join(str(one) for one in texts if one)
    question = text if isinstance(text, str) and text else call.tool
    return ApprovalRequest(call.call, call.tool, call.arguments, question, call.name)


def _answers(kept: JSON, text: str) -> str:
    """A person's answers."""
    answers = kept.get("answers") if isinstance(kept, Mapping) else None
    if isinstance(answers, Mapping):
        return "\n".join(str(answer) for answer in answers.values())
    return text.removeprefix(_ANSWERED) if text.startswith(_ANSWERED) else ""
