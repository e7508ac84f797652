"""What an import would bring, without a log: sessions and their counts, and problems."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...engine.events import (
    ActionResolved,
    ActionTaken,
    MessageSent,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from ...engine.records import TRACE
from .batches import read_from
from .protocol import Importer, Reading, Remark

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
        first: what was said first, cut to a line.
    """

    session: str
    task: str = ""
    human: int = 0
    agent: int = 0
    calls: int = 0
    failed: int = 0
    outputs: int = 0
    scores: int = 0
    first: str = ""


class ImportPreview(msgspec.Struct, frozen=True, kw_only=True):
    """All sessions, and what a person should know."""

    sessions: list[SessionPreview]
    remarks: list[Remark]


_FIRST = 60


def preview_foreign(source: Path, importer: Importer, reading: Reading) -> ImportPreview:
    """Reads a source through, and counts; blocks on files.

    Raises:
        InvalidInput: the source as a whole cannot be read.
    """
    sessions: dict[str, SessionPreview] = {}
    remarks: list[Remark] = []
    for one in read_from(source, importer, reading):
        if isinstance(one, Remark):
            remarks.append(one)
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
            case _:
                pass
    return ImportPreview(sessions=list(sessions.values()), remarks=remarks)
