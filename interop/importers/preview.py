"""A preview of an import, without a log: sessions, their counts, and problems."""

from __future__ import annotations

from pathlib import Path
from typing import final

import msgspec

from ...engine.errors import DuologError
from ...engine.events import (
    ActionResolved,
    ActionTaken,
    FeedbackGiven,
    MessageSent,
    ProgressRated,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from ...engine.log.append import prepare
from ...engine.records import TRACE
from .batches import read_from, unfit
from .protocol import Diagnostic, Foreign, Importer, Reading

__all__ = ("ImportPreview", "SessionPreview", "preview_foreign")


class SessionPreview(msgspec.Struct, kw_only=True):
    """One session.

    Attributes:
        session: its id.
        task: name of the task.
        human: messages of people.
        agent: messages of agents.
        calls: actions taken.
        failed: actions that failed.
        outputs: snapshots of the shared output.
        scores: utilities.
        ratings: the ratings of the progress of rounds.
        feedback: that people gave.
        first: the first message, cut to a line.
    """

    session: str
    task: str = ""
    human: int = 0
    agent: int = 0
    calls: int = 0
    failed: int = 0
    outputs: int = 0
    scores: int = 0
    ratings: int = 0
    feedback: int = 0
    first: str = ""


class ImportPreview(msgspec.Struct, frozen=True, kw_only=True):
    """All sessions, with diagnostics for a person."""

    sessions: list[SessionPreview]
    diagnostics: list[Diagnostic]


_FIRST = 60


def preview_foreign(source: Path, importer: Importer, reading: Reading) -> ImportPreview:
    """Reads a source through, and counts; blocks on files.

    Anything that an import would refuse is a problem: an event that no log can hold, and a second
    session of the same name whose events differ.

    Raises:
        InvalidInput: the source as a whole cannot be read.
    """
    sessions: dict[str, SessionPreview] = {}
    diagnostics: list[Diagnostic] = []
    check = _Check(reading)
    for one in read_from(source, importer, reading):
        if isinstance(one, Diagnostic):
            diagnostics.append(one)
            continue
        problem = check.problem_of(one)
        if problem is not None:
            diagnostics.append(problem)
            continue
        seen = sessions.setdefault(one.session, SessionPreview(session=one.session))
        event, role = one.draft.event, one.draft.role
        match event:
            case SessionOpened(task=task):
                seen.task = task
            case MessageSent(text=text) if role in ("human", "agent"):
                seen.human += role == "human"
                seen.agent += role == "agent"
                seen.first = seen.first or " ".join(text.split())[:_FIRST]
            case ActionTaken() if one.stream == TRACE:
                seen.calls += 1
            case ActionResolved(outcome="failed"):
                seen.failed += 1
            case SnapshotTaken():
                seen.outputs += 1
            case UtilityScored():
                seen.scores += 1
            case ProgressRated():
                seen.ratings += 1
            case FeedbackGiven():
                seen.feedback += 1
            case _:
                pass
    return ImportPreview(sessions=list(sessions.values()), diagnostics=diagnostics)


@final
class _Check:
    """Checks events as a log would, session by session.

    Args:
        reading: how the source is read.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._held: dict[tuple[str, str], list[int]] = {}  # hashes of events, by stream
        self._at: dict[tuple[str, str], int] = {}
        self._refused: set[str] = set()

    def problem_of(self, one: Foreign) -> Diagnostic | None:
        """Why an import would refuse an event; None if it would not, or the reason was given already."""
        draft, session = one.draft, one.session
        if isinstance(draft.event, SessionOpened):
            self._at = {key: 0 for key in self._held if key[0] == session}
            self._refused.discard(session)
        try:
            made = prepare(session, [draft], one.stream, None, None, self._reading.redact)
        except DuologError as error:
            return unfit(session, draft) or Diagnostic(
                "problem", str(error), f"session {session[:60]}", session
            )
        held = self._held.setdefault((session, one.stream), [])
        at = self._at.get((session, one.stream), len(held))
        (envelope,) = made.envelopes
        seen = hash((*envelope[:5], envelope[8]))
        if at < len(held):
            self._at[session, one.stream] = at + 1
            if held[at] == seen or session in self._refused:
                return None
            self._refused.add(session)
            what = f"the source has another session of this id, with another event {at + 1}"
            return Diagnostic("problem", what, f"session {session}", session)
        held.append(seen)
        return None
