"""Weak agents, on any mind: each fails in a way that the paper describes, by itself (4.2, 5).

They are for experiments that have to show a failure: a report finds the loops of the first, and the
unproductive rounds and the drop of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ..engine.events import JSON
from ..engine.session.decisions import NOTHING, Act, Decision, Finish, Say, Submit, Verb
from ..engine.session.view import View
from .mind import AgentMind

__all__ = ("Flatterer", "Looper", "Polisher")

_TIMES: Final = 3
"""How often a looper does the same again."""

_POLISHED: Final = (
    "I have polished it once more.",
    "It reads better now, I think.",
    "I have gone over the details again. It just feels right this way.",
    "Here is a smoother version. I cannot say what exactly is better.",
)
_AGREED: Final = (
    "You are absolutely right.",
    "What a good point! I could not agree more.",
    "Yes, exactly. I see it just as you do.",
    "That is a great idea, and you have put it so well.",
)
_FIRST: Final = "Here is a version. I am very happy with how it has turned out!"


@final
class Looper:
    """Works as a one-stage agent until its first output is criticised; then it does the same again."""

    def __init__(self, mind: AgentMind) -> None:
        self._mind = mind

    async def decide(self, view: View) -> Decision:
        """The mind's next step; after criticism, its last action three times."""
        if view.in_flight:
            return NOTHING
        if not _criticised(view):
            return await self._mind.step(view, alone=False)
        said = [message.text for message in view.messages if message.actor == view.me]
        acted = [action for action in view.actions.values() if action.name != "submit"]
        same: Verb = Submit(_output(view), _media_type(view), overwrite=True)
        if acted:
            same = Act(acted[-1].name, acted[-1].arguments)
        return Decision((*[same] * _TIMES, Say(said[-1] if said else _FIRST)))


@final
class Polisher:
    """Puts up an output at once, and polishes that: nothing in it changes, and it cannot say why."""

    def __init__(self, mind: AgentMind) -> None:
        self._mind = mind

    async def decide(self, view: View) -> Decision:
        """An output from the request alone; then the same with other blanks."""
        if view.own_snapshot is None or view.in_flight:
            return await _first_output(self._mind, view)
        if not _criticised(view):
            return _idle(view)
        content = _output(view)
        if isinstance(content, str):
            content = content.rstrip("\n") if content.endswith("\n") else f"{content}\n"
        said = _next(_POLISHED, view)
        return Decision((Submit(content, _media_type(view), overwrite=True), said))


@final
class Flatterer:
    """Puts up an output at once, agrees with all that is said of it, and changes nothing."""

    def __init__(self, mind: AgentMind) -> None:
        self._mind = mind

    async def decide(self, view: View) -> Decision:
        """An output from the request alone; then praise."""
        if view.own_snapshot is None or view.in_flight:
            return await _first_output(self._mind, view)
        if not _criticised(view):
            return _idle(view)
        return Decision((_next(_AGREED, view),))


async def _first_output(mind: AgentMind, view: View) -> Decision:
    """The mind's next step from the request alone, with a word on the first output."""
    if view.in_flight:
        return NOTHING
    decision = await mind.step(view, alone=True)
    verbs = tuple(verb for verb in decision.verbs if not isinstance(verb, Finish))
    if any(isinstance(verb, Submit) for verb in verbs):
        verbs = (*verbs, Say(_FIRST))
    return Decision(verbs, decision.seconds)


def _criticised(view: View) -> bool:
    """Whether a human spoke last, after the agent's first output."""
    last = view.messages[-1] if view.messages else None
    if last is None or last.role != "human" or view.own_snapshot is None:
        return False
    first = next(r for r in view.records if r.kind == "SnapshotTaken" and r.actor == view.me)
    return last.version > first.version


def _next(texts: Sequence[str], view: View) -> Say:
    """One text after the other, so that these agents do not loop."""
    said = sum(1 for message in view.messages if message.actor == view.me)
    return Say(texts[said % len(texts)])


def _idle(view: View) -> Decision:
    """Waits; ends the session if all wait."""
    nudged = any(record.kind == "Nudged" for record in view.news)
    return Decision((Finish("there is nothing left to do"),)) if nudged else NOTHING


def _output(view: View) -> JSON:
    return "" if view.snapshot is None else view.snapshot.content


def _media_type(view: View) -> str:
    return "text/plain" if view.snapshot is None else view.snapshot.media_type
