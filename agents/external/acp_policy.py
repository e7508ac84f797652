"""Builds the prompts for an ``acp:`` agent, and turns its replies into decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, final

import msgspec

from ...engine.errors import InvalidInput, malformed
from ...engine.events import (
    ActionResolved,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    Nudged,
    SnapshotTaken,
)
from ...engine.models.prompting.actions import ActionSpace
from ...engine.models.prompting.conversation import ModelConversation, UnreadableReply, reply_text
from ...engine.models.prompting.prompt_context import CHARACTERS_PER_TOKEN, situation, teammates
from ...engine.models.prompting.prompts import load_prompts
from ...engine.models.protocol import Message, ModelReply, ToolCall
from ...engine.session.decisions import NOTHING, Ask, Decision, Say, Verb, Wait
from ...engine.session.view import ApprovalSeen, View
from ...engine.task import Brief
from ...engine.text import text_of
from ..careful import PATIENCE
from ..model_mind import habit_lines
from .acp_agent import PERMISSION
from .line_policy import offered
from .workspace import output_file

__all__ = ("AcpPolicy",)

_PROMPTS = load_prompts(__package__.rpartition(".")[0])
_ACTION: Final = re.compile(r"^[ \t]*[*_#]*action[*_]*[ \t]*:", re.IGNORECASE | re.MULTILINE)
_ELSEWHERE = frozenset({"submit", "ask"})  # the file, and requests for permission


@final
class AcpPolicy:
    """Decides for one agent by prompting it, turn by turn.

    A file that it changed is submitted; a permission that it asks for is an approval, which the
    human gives or refuses; nobody's answer within `PATIENCE` seconds is a refusal.

    Args:
        conversation: the conversation with the agent.
        brief: describes the task.
    """

    def __init__(self, conversation: ModelConversation, brief: Brief) -> None:
        self._conversation = conversation
        self._brief = brief
        self._seen = 0
        self._patience: float | None = None  # session time until which a permission is waited for

    async def decide(self, view: View) -> Decision:
        """The next decision; an empty one if nothing in the agent's turn could be used."""
        answer = None
        if self._patience is not None:
            answer = _answer(view)
            left = self._patience - view.now
            if answer is None and left > 0 and not view.idle:
                return Decision((Wait(left),))
            answer = answer or "refused: nobody has answered"
            self._patience = None
        actions = [one for one in offered(view, self._brief) if one.spec.name not in _ELSEWHERE]
        space = ActionSpace(actions)
        since, self._seen = self._seen, view.version
        found = await self._conversation.ask(
            "act" if answer is None else "go on",
            lambda tokens: tuple(self._messages(view, space, since, answer, tokens)),
            lambda reply: self._verbs(reply, space, view),
        )
        if isinstance(found, UnreadableReply):
            return NOTHING
        if any(isinstance(verb, Ask) for verb in found):
            self._patience = view.now + PATIENCE
        return Decision(found)

    def _messages(
        self, view: View, space: ActionSpace, since: int, answer: str | None, tokens: int
    ) -> Iterator[Message]:
        """The whole situation, and the news in it; see ``AcpAgent``."""
        brief, team, file = self._brief, teammates(view), output_file(self._brief)
        introduction = _PROMPTS.fill(
            "together",
            me=view.me,
            team=team,
            habits=habit_lines(),
            description=brief.description,
            form=brief.output,
        )
        form = _PROMPTS.fill("act_files", file=file, team=team, actions_available=space.description)
        fixed = (len(introduction) + len(form)) // CHARACTERS_PER_TOKEN
        shown = msgspec.structs.asdict(situation(view, max(tokens - fixed, 0)))
        now = _PROMPTS.fill("situation", **shown).rstrip()
        yield Message(role="system", content=f"{introduction}\n\n{now}\n\n{form}")
        news = "\n".join(_news(view, since, file)) or "(nothing)"
        next_step = _PROMPTS.fill("act_files_next", news=news, file=file, team=team)
        yield Message(role="user", content=next_step)
        if answer is not None:
            yield Message(role="tool", content=answer, tool_call_id=PERMISSION)

    def _verbs(self, reply: ModelReply, space: ActionSpace, view: View) -> tuple[Verb, ...]:
        """Converts a turn to verbs.

        Raises:
            InvalidInput: the action does not exist, or the output does not fit.
        """
        text = reply_text(reply) if reply.text.strip() else ""
        verbs: list[Verb] = []
        for call in reply.tool_calls:
            arguments: dict[str, Any] = msgspec.json.decode(call.arguments)
            if call.name == "ask":
                said = (Say(text),) if text else ()
                ask = Ask(arguments["question"], arguments["action"], arguments["arguments"])
                return (*said, ask, Wait(PATIENCE))
            verbs += self._submitted(str(arguments["content"]), view)
        if _ACTION.search(text):
            return (*verbs, *space.read_text(text))
        if text:
            verbs.append(Say(text))
        return (*verbs, Wait()) if text or not verbs else tuple(verbs)

    def _submitted(self, text: str, view: View) -> tuple[Verb, ...]:
        """The verb that submits a file's text, checked as any agent's output is.

        Raises:
            InvalidInput: it is not JSON though it has to be, or does not fit the schema.
        """
        content: Any = text
        if self._brief.schema.get("type") != "string":
            try:
                content = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError) as error:
                raise InvalidInput(
                    f"{output_file(self._brief)} is not JSON: {malformed(error)}"
                ) from None
        space = ActionSpace(one for one in offered(view, self._brief) if one.spec.name == "submit")
        arguments = msgspec.json.encode({"content": content}).decode()
        return space.read_calls([ToolCall(id="submit", name="submit", arguments=arguments)])


def _own_last(view: View) -> ApprovalSeen | None:
    """The agent's last request for approval."""
    own = [one for one in view.approvals.values() if one.actor == view.me]
    return own[-1] if own else None


def _answer(view: View) -> str | None:
    """The answer to the agent's last request for approval; None if there is none yet."""
    asked = _own_last(view)
    if asked is None or asked.given is None:
        return None
    comment = f": {asked.given.comment}" if asked.given.comment else ""
    return f"{'allowed' if asked.given.approved else 'refused'}{comment}"


def _news(view: View, since: int, file: str) -> Iterator[str]:
    """The events since a trace version, one per line."""
    for record in view.records:
        if record.version <= since:
            continue
        event, mine = record.event, record.actor == view.me
        match event:
            case MessageSent() if not mine:
                yield f"- {record.actor} says: {_set_in(event.text)}"
            case SnapshotTaken() if not mine:
                yield f"- {record.actor} has changed the output: {file} holds the new version."
            case ActionResolved():
                action = view.actions[event.action].name
                seen = "" if event.observation is None else f": {text_of(event.observation)}"
                why = f": {event.error}" if event.error else ""
                yield f"- Your action {action} is {event.outcome}{_set_in(seen + why)}"
            case ApprovalAsked() if not mine:
                yield f"- {record.actor} asks for leave: {_set_in(event.question)}"
            case ApprovalGiven() if not mine:
                what = "allows it" if event.approved else "refuses it"
                yield f"- {record.actor} {what}{f': {event.comment}' * bool(event.comment)}"
            case Nudged():
                yield "- Everybody is waiting for somebody else to go on."
            case _:
                pass  # it is one's own, or says nothing


def _set_in(text: str) -> str:
    return text.replace("\n", "\n    ")
