"""Credits what a tutor on a model explains in its own words: a model reads each message for lessons.

A tutor on rules teaches by the act ``Teach``. A tutor on a model may take that act, too. If it only speaks, the judge
reads its message by a rubric, and the lessons that it finds are recorded as ``Teach`` before the message. ``docs/gallery/tutoring.md``
says how far readers agree with labels.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final, final

import msgspec

from ....agents.mind import AgentMind, Intent
from ....engine.errors import InvalidInput
from ....engine.models.prompting.conversation import ModelConversation, UnreadableReply
from ....engine.models.prompting.prompts import load_prompts
from ....engine.models.protocol import Message, ModelReply
from ....engine.session.decisions import Act, Decision, Say
from ....engine.session.view import View
from ..language.teaching import RULES
from ..maths.rules import MISCONCEPTIONS
from ..student.learning import TEACH, Teach, lesson_of

__all__ = ("JudgedTutor", "judge_prompt", "read_verdict")

_PROMPTS: Final = load_prompts(__package__.rpartition(".")[0])
_LINE: Final = re.compile(r"^[ \t>*_-]*lesson[*_]*[ \t]*:(.{1,400})$", re.IGNORECASE | re.MULTILINE)
_PARTS: Final = 4


def judge_prompt(message: str, before: str) -> str:
    """The rubric, filled in for a tutor's message.

    Args:
        message: the message.
        before: the tutor's message before it; empty if there is none.
    """
    return _PROMPTS.fill(
        "judge",
        skills="\n".join(f"- {skill}: {rule}" for skill, rule in RULES.items()),
        misconceptions="\n".join(
            f"- {name} ({one.component}): they {one.does}" for name, one in MISCONCEPTIONS.items()
        ),
        message=message,
        before=before or "(nothing)",
    )


def read_verdict(text: str) -> tuple[Teach, ...]:
    """The lessons in a judge's reply, each skill once; none if it lists no lessons.

    Raises:
        InvalidInput: a line has other parts, an unknown skill or misconception, or a problem that does not
            take the rule.
    """
    found: dict[str, Teach] = {}
    for line in _LINE.findall(text):
        parts = [part.strip(" \t*_`") for part in line.split("|")]
        if len(parts) != _PARTS:
            raise InvalidInput(
                f"a lesson has {_PARTS} parts, as in 'Lesson: SKILL | how | problem | -', got {line.strip()!r}"
            )
        skill, how, example, refutes = parts
        arguments = {
            "skill": skill,
            "how": how.lower(),
            "example": example,
            "refutes": "" if refutes in ("", "-") else refutes,
        }
        lesson_of(arguments)
        found.setdefault(skill, msgspec.convert(arguments, Teach))
    return tuple(found.values())


@final
class JudgedTutor:
    """A tutor's mind on a model, whose messages are read for lessons.

    Args:
        mind: the tutor's.
        conversation: reaches the judge, which is the tutor's own model with another prompt.
    """

    def __init__(self, mind: AgentMind, conversation: ModelConversation) -> None:
        self._mind = mind
        self._conversation = conversation

    async def step(self, view: View, *, alone: bool) -> Decision:
        """The tutor's step, with the lessons of its message."""
        decision = await self._mind.step(view, alone=alone)
        return decision if alone else await self._credited(view, decision)

    async def plan(self, view: View) -> Intent:
        """The tutor's plan."""
        return await self._mind.plan(view)

    async def message(self, view: View, *, questions: int = 1) -> Decision:
        """The tutor's message, with its lessons."""
        return await self._credited(view, await self._mind.message(view, questions=questions))

    async def ask(self, view: View, *, questions: int = 1) -> Decision | None:
        """The tutor's question."""
        return await self._mind.ask(view, questions=questions)

    async def report(self, view: View, *, final: bool) -> Decision:
        """The tutor's report, with its lessons."""
        return await self._credited(view, await self._mind.report(view, final=final))

    def estimate(self, view: View) -> float | None:
        """The tutor's estimate."""
        return self._mind.estimate(view)

    async def act(self, view: View) -> Decision:
        """The tutor's act, which may be ``Teach``; it is not judged."""
        return await self._mind.act(view)

    async def _credited(self, view: View, decision: Decision) -> Decision:
        """The decision, with the lessons that are read from its message before it."""
        said = [verb.text for verb in decision.verbs if isinstance(verb, Say)]
        typed = any(isinstance(verb, Act) and verb.name == TEACH for verb in decision.verbs)
        if not said or typed:
            return decision
        own = [message.text for message in view.messages if message.actor == view.me]
        prompt = judge_prompt("\n".join(said), own[-1] if own else "")
        found = await self._conversation.ask(
            "judge teaching", partial(_messages, prompt), _read_reply
        )
        if isinstance(found, UnreadableReply) or not found:
            return decision
        lessons = tuple(Act(TEACH, msgspec.to_builtins(one)) for one in found)
        return Decision((*lessons, *decision.verbs), decision.seconds)


def _messages(prompt: str, tokens: int) -> tuple[Message, ...]:
    return (Message(role="user", content=prompt),)


def _read_reply(reply: ModelReply) -> tuple[Teach, ...]:
    return read_verdict(reply.text or "")
