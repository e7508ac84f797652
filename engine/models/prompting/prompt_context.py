"""The part of its view that a model-backed actor sees: texts within a budget, cut oldest first.

Everything carries its trace version in brackets, so that messages, actions and changes can be
ordered across the sections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import msgspec

from ...events import JSON, ActionTaken, ApprovalAsked, MessageSent, SnapshotTaken, TurnYielded
from ...records import Record
from ...rounds import is_act
from ...session.decisions import (
    Act,
    Approve,
    Ask,
    Decision,
    Finish,
    Say,
    Submit,
    Verb,
    drafted,
)
from ...session.view import ActionSeen, View
from ...text import text_of

__all__ = (
    "CHARACTERS_PER_TOKEN",
    "Situation",
    "draft_text",
    "situation",
    "teammates",
)

CHARACTERS_PER_TOKEN = 4
"""About how many characters of English a token has; budgets are kept by this."""

_NONE = "(none yet)"
_KEPT = 200  # characters that remain of a shortened text
_FRESH = 4  # messages at the end that are never shortened
_encoder = msgspec.json.Encoder()


@final
class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """The sections that an actor is shown.

    Attributes:
        request: the initial request.
        output: the current shared output, and its author.
        chat: the messages.
        actions: the actor's own actions and their outcomes.
        others: acts of the others, except messages, since the actor's own last act.
        notes: its scratchpad.
        team: the names and roles of the others.
        status: anything else that matters now.
    """

    request: str
    output: str
    chat: str
    actions: str
    others: str
    notes: str
    team: str
    status: str


def situation(view: View, tokens: int) -> Situation:
    """The sections of a view, within about the given number of tokens.

    If they are too long, observations are shortened, the oldest first; then left out, the oldest
    first. Then messages, and finally notes, are shortened in the same order. The request, the
    output and the last messages are never cut, so the result may exceed the budget.

    Args:
        view: the actor's.
        tokens: the budget, at `CHARACTERS_PER_TOKEN` characters each.
    """
    chat = [_message(view, index) for index in range(len(view.messages))]
    actions = [_ActionText(action) for action in view.actions.values()]
    own = [_SubmissionText(record) for record in view.records if _is_own_snapshot(view, record)]
    deeds: list[_ActionText | _SubmissionText] = sorted(
        [*actions, *own], key=lambda deed: deed.version
    )
    notes = list(view.notes)
    output = _output(view)
    others = "\n".join(_others(view)) or "(nothing)"
    fixed = len(view.request) + len(output) + len(others)
    room = tokens * CHARACTERS_PER_TOKEN - fixed
    excess = sum(map(len, chat)) + sum(deed.size for deed in deeds) + sum(map(len, notes)) - room
    for keep in (_KEPT, 0):
        for action in actions:
            if excess <= 0:
                break
            excess -= action.shorten(keep)
    excess -= _shorten(chat, excess, len(chat) - _FRESH)
    _shorten(notes, excess, len(notes))
    return Situation(
        request=view.request,
        output=output,
        chat="\n".join(chat) or _NONE,
        actions="\n".join(deed.text for deed in deeds) or _NONE,
        others=others,
        notes="\n".join(f"- {_indent(note)}" for note in notes) or _NONE,
        team=teammates(view),
        status="\n".join(_status(view)),
    )


class _ActionText:
    """One of the actor's own actions, as it is shown."""

    def __init__(self, action: ActionSeen) -> None:
        self.version = action.version
        arguments = _json(action.arguments)
        if action.name == "submit":  # a refused one, which need not be read again
            arguments = _cut(arguments, _KEPT)
        self._head = f"[{action.version}] {action.name} {arguments}"
        self._outcome, self._observation = _outcome(action)

    @property
    def text(self) -> str:
        return f"{self._head}\n  -> {self._outcome}{self._observation}"

    @property
    def size(self) -> int:
        return len(self._head) + len(self._outcome) + len(self._observation) + 6

    def shorten(self, keep: int) -> int:
        """Cuts the observation to a number of characters; returns how many it saved."""
        before = len(self._observation)
        if before > keep:
            shortened = _cut(self._observation, keep)
            if len(shortened) < before:
                self._observation = shortened
        return before - len(self._observation)


class _SubmissionText:
    """A version of the output that the actor itself submitted."""

    def __init__(self, record: Record) -> None:
        self.version = record.version
        self.text = f"[{record.version}] submit: a new version of the output"
        self.size = len(self.text)


def _outcome(action: ActionSeen) -> tuple[str, str]:
    """An action's outcome and its observation, as text."""
    resolved = action.resolved
    if resolved is None:
        return "under way", ""
    if resolved.outcome == "ok":
        seen = resolved.observation
        return "ok", "" if seen is None else f": {_indent(_json(seen))}"
    return resolved.outcome, f": {_indent(resolved.error or '')}" if resolved.error else ""


def _message(view: View, index: int) -> str:
    message = view.messages[index]
    you = " (you)" if message.actor == view.me else ""
    return f"[{message.version}] {message.actor}{you}: {_indent(message.text)}"


def _output(view: View) -> str:
    if view.snapshot is None:
        return "(there is none yet)"
    by = "you" if view.snapshot.actor == view.me else view.snapshot.actor
    return f"Version [{view.snapshot.version}], by {by}:\n{view.snapshot_text}"


def _others(view: View) -> Iterator[str]:
    """Acts of the others, except messages, since the actor's own last act."""
    last = max((r.version for r in view.records if r.actor == view.me and is_act(r)), default=0)
    for record in view.records:
        if record.version <= last or record.actor == view.me:
            continue
        event = record.event
        head = f"[{record.version}] {record.actor}"
        if isinstance(event, ActionTaken) and event.name != "submit":
            yield f"{head} takes the action {event.name} {_cut(_json(event.arguments), _KEPT)}"
        elif isinstance(event, SnapshotTaken):
            yield f"{head} puts up a new version of the output"
        elif isinstance(event, TurnYielded):
            yield f"{head} waits"
        elif isinstance(event, MessageSent):
            yield f"{head} says something (see the chat)"
        elif isinstance(event, ApprovalAsked):
            yield f"{head} asks for approval: {_indent(event.question)}"


def _status(view: View) -> Iterator[str]:
    for approval in view.open_approvals:
        asked = approval.asked
        deed = f" ({asked.action} {_json(asked.arguments)})" if asked.action else ""
        yield f"{approval.actor} asks for approval in [{approval.version}]: {asked.question}{deed}"
    if view.pending is not None and (draft := draft_text(view.pending)):
        yield _draft_status(view, draft)
    if any(record.kind == "Nudged" for record in view.news):
        yield "Everybody is waiting for somebody else to go on."


def draft_text(decision: Decision) -> str:
    """Puts a decision into words; empty if others would not notice it."""
    return ", ".join(_drafted(verb) for verb in drafted(decision))


def _draft_status(view: View, draft: str) -> str:
    """Says how far an actor had come with a draft when there was news."""
    spent, whole = view.pending_spent, view.pending_seconds
    return f"You were {draft} ({spent:.0f} of {whole:.0f} seconds passed)."


def _drafted(verb: Verb) -> str:
    match verb:
        case Say(text):
            return f'typing: "{text}"'
        case Act(name, arguments):
            return f"about to {name} {_cut(_json(arguments), _KEPT)}"
        case Submit(content):
            return f'about to put up a new version of the output: "{_cut(text_of(content), _KEPT)}"'
        case Ask(question):
            return f'asking for approval: "{question}"'
        case Approve(asked, approved, comment):
            said = f', saying: "{comment}"' if comment else ""
            return f"about to {'allow' if approved else 'refuse'} what [{asked}] asks for{said}"
        case Finish():
            return "about to end the work"
    return ""


def teammates(view: View) -> str:
    """The others who take part, by name and role."""
    others = [one for one in view.participants if one.name != view.me]
    return ", ".join(f"{one.name} ({one.role})" for one in others) or "nobody else"


def _is_own_snapshot(view: View, record: Record) -> bool:
    return record.kind == "SnapshotTaken" and record.actor == view.me


def _shorten(texts: list[str], excess: int, most: int) -> int:
    """Shortens texts in place, from the first, until so much is saved; says how much it was."""
    saved = 0
    for index in range(max(most, 0)):
        if saved >= excess:
            break
        shortened = _cut(texts[index], _KEPT)
        saved += max(0, len(texts[index]) - len(shortened))
        texts[index] = min(texts[index], shortened, key=len)
    return saved


def _cut(text: str, keep: int) -> str:
    if len(text) <= keep:
        return text
    return f"{text[:keep]} (... {len(text) - keep} characters are left out here)"


def _indent(text: str) -> str:
    """Indents all lines but the first, so that none of them looks like a separate entry."""
    return text.replace("\n", "\n    ")


def _json(value: JSON) -> str:
    return text_of(value) if isinstance(value, str) else _encoder.encode(value).decode()
