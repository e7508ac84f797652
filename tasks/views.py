"""Helpers for rule policies to read a view: whose turn it is, and the messages and outputs of each side."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Generic, TypeVar, final

from ..engine.events import SnapshotTaken
from ..engine.files import Contents, output_text
from ..engine.rounds import is_act
from ..engine.session.decisions import Act, Submit
from ..engine.session.view import ActionSeen, View

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

__all__ = (
    "Kept",
    "Outcomes",
    "Words",
    "announced",
    "asked_last",
    "awaits_answer",
    "awaits_reaction",
    "changes",
    "drafted_on",
    "in_vain",
    "is_busy",
    "is_working",
    "nudged",
    "outcomes",
    "output_before",
    "owes_reply",
    "own_messages",
    "trait",
    "turn_seed",
    "unannounced",
    "words_of",
)


_T = TypeVar("_T")


@final
class Words(Random):
    """Random numbers whose choice among texts prefers those that the actor has said least often.

    It is a ``Random``, so that all that draws from one can be given it.

    Args:
        view: the actor's.
    """

    def __init__(self, view: View) -> None:
        super().__init__(turn_seed(view))
        self._view = view
        self._said: str | None = None

    def choice(self, seq: SupportsLenAndGetItem[_T]) -> _T:
        """One of them; of texts, one that is said least often so far."""
        options = [seq[index] for index in range(len(seq))]
        times = [self._times(one) if isinstance(one, str) else 0 for one in options]
        if any(times):
            options = [one for one, n in zip(options, times, strict=True) if n == min(times)]
        return super().choice(options)

    def _times(self, text: str) -> int:
        if self._said is None:
            self._said = "\n".join(own_messages(self._view)).lower()
        found = text.strip().lower()
        return self._said.count(found) if found else 0


def words_of(view: View) -> Words:
    """Random numbers for what an actor does next, the same while a decision is reconsidered."""
    return Words(view)


def turn_seed(view: View) -> str:
    """The seed for an actor's next decision; it stays the same while the decision is reconsidered."""
    return f"{view.seed}/{view.me}/{view.acts}"


def trait(view: View, what: str) -> Random:
    """Random numbers for a trait of an actor, the same for the whole session and in all forks."""
    return Random(f"{view.trait_seed}/{view.me}/{what}")


def changes(view: View) -> int:
    """How often the actor's profile has changed."""
    return sum(1 for record in view.records if record.kind == "ProfileChanged")


def own_messages(view: View) -> list[str]:
    """The actor's own messages, in order; a human's first one is the request."""
    return [message.text for message in view.messages if message.actor == view.me]


def outcomes(view: View) -> list[ActionSeen]:
    """The actor's own task actions that are resolved, in order."""
    return [
        action
        for action in view.actions.values()
        if action.resolved is not None and action.name in view.actions_available
    ]


@final
class Kept(Generic[_T]):
    """Makes something of a view once for each decision; one for each actor and session.

    Args:
        make: makes it, from the view alone.
    """

    def __init__(self, make: Callable[[View], _T]) -> None:
        self._make = make
        self._held: tuple[View, int, int, _T] | None = None

    def on(self, view: View) -> _T:
        """The result for the view as it is."""
        held = self._held
        if (
            held is None
            or held[0] is not view
            or held[1] != view.decisions
            or held[2] != view.version
        ):
            held = self._held = (view, view.decisions, view.version, self._make(view))
        return held[3]


@final
class Outcomes:
    """Gives each outcome of an actor's own task actions once; one for each actor and session."""

    def __init__(self) -> None:
        self._given: set[int] = set()

    def fresh(self, view: View) -> list[ActionSeen]:
        """Those that were not given yet, in order."""
        found = [action for action in outcomes(view) if action.version not in self._given]
        self._given.update(action.version for action in found)
        return found


def asked_last(view: View) -> str:
    """The last message, if it is another's and asks something; else empty."""
    last = view.messages[-1] if view.messages else None
    asks = last is not None and last.actor != view.me and last.role == "agent" and "?" in last.text
    return last.text if last is not None and asks else ""


def awaits_answer(view: View) -> bool:
    """Whether the last message is a question of this actor."""
    last = view.messages[-1] if view.messages else None
    return last is not None and last.actor == view.me and "?" in last.text


def owes_reply(view: View) -> bool:
    """Whether a human spoke last, after a first output of this actor."""
    last = view.messages[-1] if view.messages else None
    return last is not None and last.role == "human" and view.own_snapshot is not None


def unannounced(view: View) -> bool:
    """Whether the actor has submitted an output since its last message."""
    for record in reversed(view.records):
        if record.actor == view.me and record.kind == "MessageSent":
            return False
        if record.actor == view.me and record.kind == "SnapshotTaken":
            return True
    return False


def announced(view: View) -> bool:
    """Whether the actor has said anything since its first output."""
    first = next((r.version for r in view.snapshots if r.actor == view.me), None)
    return first is not None and any(
        m.actor == view.me and m.version > first for m in view.messages
    )


def nudged(view: View) -> bool:
    """Whether the engine has reminded the actor that all wait for each other."""
    return any(record.kind == "Nudged" for record in view.news)


def in_vain(view: View) -> int:
    """How many messages in a row the actor has sent since the output was last another one; 0 before
    there is an output.
    """
    since, digest = 0, ""
    for record in view.snapshots:
        event = record.event
        if isinstance(event, SnapshotTaken) and event.digest != digest:
            since, digest = record.version, event.digest
    if not digest:
        return 0
    return sum(1 for one in view.messages if one.version > since and one.actor == view.me)


def drafted_on(view: View) -> int | None:
    """The trace version that the actor's last own output was decided on; None before there is one.

    What came later is not in that output.
    """
    for record in reversed(view.snapshots):
        if record.actor == view.me:
            return record.version if record.seen is None else record.seen
    return None


def is_busy(view: View) -> bool:
    """Whether the actor is about to act or to submit: it ignores news until that is done."""
    return view.pending is not None and any(isinstance(v, Act | Submit) for v in view.pending.verbs)


def is_working(view: View) -> bool:
    """Whether the agent is busy: acting, or about to send a message."""
    for record in reversed(view.records):
        if record.kind in ("TurnYielded", "MessageSent", "Nudged"):
            return False
        if record.kind == "ActionTaken" and record.role == "agent":
            return True
    return False


def awaits_reaction(view: View) -> bool:
    """Whether the actor acted last and waits for the others; not after a nudge."""
    if nudged(view):
        return False
    for record in reversed(view.records):
        if is_act(record):
            return record.actor == view.me and record.kind != "ActionTaken"
    return False


def output_before(view: View) -> str:
    """The output at the actor's last act, as text; empty if there was none."""
    contents = Contents()
    found: SnapshotTaken | None = None
    for record in view.snapshots:
        if record.version > view.last_act:
            break
        event = record.event
        if isinstance(event, SnapshotTaken):
            found = contents.whole(event)
    return "" if found is None else output_text(found)
