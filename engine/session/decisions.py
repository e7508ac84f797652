"""Verbs, and the decisions that actors make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from ..events import JSON

__all__ = (
    "NOTHING",
    "Act",
    "Approve",
    "Ask",
    "ChangeProfile",
    "Decision",
    "Ending",
    "Finish",
    "Note",
    "Rate",
    "Say",
    "Submit",
    "Verb",
    "Wait",
    "drafted",
)


class Say(msgspec.Struct, frozen=True):
    """Send a message to the others, or to those named in ``to``."""

    text: str
    to: tuple[str, ...] = ()


class Act(msgspec.Struct, frozen=True):
    """Take a task action; its outcome is news later."""

    name: str
    arguments: Mapping[str, JSON] = {}


class Submit(msgspec.Struct, frozen=True):
    """Submit a new version of the shared output.

    It counts as made from the snapshot that the view showed when it was decided; if that is no
    longer the latest it is refused, unless ``overwrite``.

    Attributes:
        content: the output in full; of several files the texts of those that changed, by path, and
            None for one that is gone.
        media_type: the media type of the content.
        overwrite: take it even if the output has changed since.
        files: whether the output is several files.
    """

    content: JSON
    media_type: str = "text/plain"
    overwrite: bool = False
    files: bool = False


class Ask(msgspec.Struct, frozen=True):
    """Ask for approval, of an action perhaps."""

    question: str
    action: str | None = None
    arguments: Mapping[str, JSON] = {}
    to: tuple[str, ...] = ()


class Approve(msgspec.Struct, frozen=True):
    """Give or deny the approval asked for at trace version ``asked``.

    ``source`` is ``person`` if a real person decides; None for simulated users and programs.
    """

    asked: int
    approved: bool = True
    comment: str = ""
    source: Literal["person"] | None = None


class Note(msgspec.Struct, frozen=True):
    """Write into the actor's own memory."""

    text: str


class ChangeProfile(msgspec.Struct, frozen=True):
    """Change the actor's own private part, such as goals or knowledge: in full, and with a reason.

    It takes no time, and the other actors do not see it. If decided together with a message, it
    comes before the message, so that it belongs to the round that caused it.
    """

    profile: JSON
    reason: str = ""


class Rate(msgspec.Struct, frozen=True):
    """Rate the progress of a round, 1 to 5: the latest in which an agent acted, or round ``round``."""

    rating: int
    explanation: str = ""
    round: int | None = None


class Wait(msgspec.Struct, frozen=True):
    """Leave the turn to the others until there is news, or for ``seconds`` at most."""

    seconds: float | None = None
    reason: str = ""


Ending: TypeAlias = Literal["finished", "abandoned"]
"""How an actor may end a session: satisfied, or given up."""


class Finish(msgspec.Struct, frozen=True):
    """End the session.

    Attributes:
        detail: why, in the actor's own words.
        reason: ``finished``: it is good as it is; ``abandoned``: the actor gives up.
    """

    detail: str = ""
    reason: Ending = "finished"


Verb = Say | Act | Submit | Ask | Approve | Note | ChangeProfile | Rate | Wait | Finish
"""Anything that a decision may hold."""


class Decision(msgspec.Struct, frozen=True):
    """An actor's next acts: verbs that are emitted together once its working time has passed.

    Attributes:
        verbs: in order. Without any (and without ``seconds``), the actor waits for news.
        seconds: working time; None if the session's ``Timing`` should model it. A person takes at least as
            long as typing takes.
        drops: whether this decision abandons the pending one instead of revising it. Pending verbs
            without a counterpart of their kind here count as dropped in any case.
    """

    verbs: tuple[Verb, ...] = ()
    seconds: float | None = None
    drops: bool = False


NOTHING = Decision()
"""Wait for news."""


def drafted(decision: Decision) -> tuple[Verb, ...]:
    """The verbs of a decision that others would notice: an actor works on these while its time passes."""
    return tuple(
        verb for verb in decision.verbs if not isinstance(verb, Note | ChangeProfile | Rate | Wait)
    )
