"""The rule-driven travel agent: searches, plans, asks, and learns from messages.

It knows the request, the messages and the results of its own searches, all from its view. It learns
wishes only from messages. Its whole memory is recomputed from the view.
"""

from __future__ import annotations

from random import Random
from typing import final

from ...agents.mind import Intent
from ...engine.session.decisions import NOTHING, Act, Decision, Finish, Say, Submit
from ...engine.session.view import View
from .language.facts import ANY, Fact, Slot
from .language.messages import ask, is_deferral, understand_message, understand_question
from .plan.text import render_plan
from .planner.finds import Finds
from .planner.knowledge import Knowledge, knowledge_from_request, learn
from .planner.planner import needed_searches, plan_trip

__all__ = ("TravelAgent",)

_ESSENTIAL: tuple[Slot, ...] = ("cities", "people", "budget")
"""What a two-stage agent asks before its first draft: these wishes shape the whole plan."""

_ORDER: tuple[Slot, ...] = (
    *_ESSENTIAL,
    "room_type",
    "house_rule",
    "cuisine",
    "transportation",
)

_FIRST = (
    "Here is a first plan for {days} days in {destination}.",
    "I have drafted {days} days in {destination} for you.",
)
_CHANGED = (
    "Thanks, I have worked that in; the plan is updated.",
    "Done: the new plan takes that into account.",
)
_UNCHANGED = (
    "The plan holds good with that as it stands.",
    "Noted. The plan needs no change for that.",
)
_CLOSING = "Please have a look, and tell me if anything should be different."
_FINAL = "That is as far as I get; please take it from here, and change whatever you like."


@final
class TravelAgent:
    """What a travel agent does next, by rules; one for each session."""

    def __init__(self) -> None:
        self._finds = Finds()
        self._absorbed: set[int] = set()

    async def step(self, view: View, *, alone: bool) -> Decision:
        """Searches while something is missing, then drafts, then reacts."""
        self._absorb(view)
        if view.in_flight:
            return NOTHING
        known = _knowledge(view)
        work = self._work(view, known)
        if work is not None:
            if alone or not isinstance(work.verbs[0], Submit):
                return work
            return Decision((*work.verbs, Say(_announcement(view, known, updated=True))))
        if alone or _nudged_in_vain(view):
            return Decision((Finish("there is nothing left to do"),))
        if _owes_reply(view):
            return Decision((Say(_announcement(view, known, updated=False)),))
        return NOTHING

    async def plan(self, view: View) -> Intent:
        """Asks what matters before the first draft, acts on what is known, then reports."""
        self._absorb(view)
        if view.in_flight:
            return "wait"
        known = _knowledge(view)
        drafted = view.own_snapshot is not None
        if _awaits_answer(view):
            return "act" if _nudged(view) else "wait"
        if not drafted and _next_question(view, known) in _ESSENTIAL:
            return "message"
        if self._work(view, known) is not None:
            return "act"
        if _owes_reply(view) or _unannounced(view):
            return "message"
        return "act" if _nudged_in_vain(view) else "wait"

    async def message(self, view: View) -> Decision:
        """A question before the first draft; a report and the next question after it."""
        known = _knowledge(view)
        if view.own_snapshot is None:
            question = _next_question(view, known) or "generic"
            return Decision((Say(ask(question, _wording(view))),))
        return Decision((Say(_announcement(view, known, updated=_unannounced(view))),))

    async def report(self, view: View, *, final: bool) -> Decision:
        """A report without a question."""
        closing = _FINAL if final else _CLOSING
        known = _knowledge(view)
        said = _state(view, known, _wording(view), updated=_unannounced(view))
        return Decision((Say(f"{said} {closing}"),))

    async def act(self, view: View) -> Decision:
        """Searches while something is missing, then drafts."""
        work = self._work(view, _knowledge(view))
        return work or Decision((Finish("there is nothing left to do"),))

    def _absorb(self, view: View) -> None:
        """Reads the outcomes of searches since the last call."""
        for action in view.actions.values():
            resolved = action.resolved
            if resolved is None or action.version in self._absorbed:
                continue
            self._absorbed.add(action.version)
            if action.name in view.actions_available:
                found = resolved.observation if resolved.outcome == "ok" else None
                self._finds.add(action.name, action.arguments, found)

    def _work(self, view: View, known: Knowledge) -> Decision | None:
        """The searches to make, or the draft to submit; None if there is nothing to do."""
        if not _draft_is_due(view, known):
            return None
        searches = needed_searches(known, self._finds)
        if searches:
            return Decision(tuple(Act(s.name, s.arguments) for s in searches))
        draft = render_plan(plan_trip(known, self._finds))
        if view.snapshot is not None and draft == view.snapshot_text:
            return None
        return Decision((Submit(draft),))


def _knowledge(view: View, until: int | None = None) -> Knowledge:
    """The wishes in the request and the messages, up to trace version ``until``."""
    request = view.request
    known = knowledge_from_request(request)
    asked: tuple[Slot, ...] = ()
    for message in view.messages:
        if until is not None and message.version > until:
            break
        if message.actor == view.me:
            asked = understand_question(message.text)
        elif message.text != request:
            facts = understand_message(message.text)
            if not facts and is_deferral(message.text):
                facts = tuple(Fact(slot, ANY) for slot in asked if slot != "generic")
            known = learn(known, facts)
    return known


def _draft_is_due(view: View, known: Knowledge) -> bool:
    """Whether more is known than when the agent last submitted."""
    for record in reversed(view.records):
        if record.kind == "SnapshotTaken" and record.actor == view.me:
            return known != _knowledge(view, until=record.seen)
    return True


def _wording(view: View) -> Random:
    """Random numbers for wordings, the same while a decision is reconsidered."""
    return Random(f"{view.seed}/{view.me}/{_said(view)}")


def _said(view: View) -> int:
    return sum(1 for message in view.messages if message.actor == view.me)


def _next_question(view: View, known: Knowledge) -> Slot | None:
    """The next question about a wish that nobody has mentioned and that was not asked yet."""
    before = {
        slot
        for message in view.messages
        if message.actor == view.me
        for slot in understand_question(message.text)
    }
    return next((s for s in _ORDER if s in known.open_slots and s not in before), None)


def _awaits_answer(view: View) -> bool:
    """Whether the last message is a question of this agent."""
    last = view.messages[-1] if view.messages else None
    return last is not None and last.actor == view.me and bool(understand_question(last.text))


def _owes_reply(view: View) -> bool:
    """Whether a human spoke last, after the agent's first draft."""
    last = view.messages[-1] if view.messages else None
    return last is not None and last.role == "human" and view.own_snapshot is not None


def _unannounced(view: View) -> bool:
    """Whether the agent has submitted a draft since its last message."""
    for record in reversed(view.records):
        if record.actor == view.me and record.kind == "MessageSent":
            return False
        if record.actor == view.me and record.kind == "SnapshotTaken":
            return True
    return False


def _nudged(view: View) -> bool:
    return any(record.kind == "Nudged" for record in view.news)


def _nudged_in_vain(view: View) -> bool:
    """Whether everybody waits and the agent has nothing more to say."""
    return _nudged(view) and not _owes_reply(view) and not _unannounced(view)


def _announcement(view: View, known: Knowledge, *, updated: bool) -> str:
    """A message about the plan, with the next question."""
    wording = _wording(view)
    said = _state(view, known, wording, updated=updated)
    question = _next_question(view, known)
    return f"{said} {ask(question, wording) if question else _CLOSING}"


def _state(view: View, known: Knowledge, wording: Random, *, updated: bool) -> str:
    """A message about the plan."""
    texts = _UNCHANGED
    if updated:
        texts = _FIRST if not _reported(view) else _CHANGED
    return wording.choice(texts).format(days=known.days, destination=known.destination)


def _reported(view: View) -> bool:
    """Whether the agent has reported a plan of its own before."""
    first = next(
        (r.version for r in view.records if r.kind == "SnapshotTaken" and r.actor == view.me), None
    )
    return first is not None and any(
        m.actor == view.me and m.version > first for m in view.messages
    )
