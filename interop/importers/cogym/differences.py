"""Where the published analysis of Collaborative Gym's logs counts otherwise than Duolog, on purpose.

It splits a log before each collaborative act of a user, takes any record that mentions an edit for
an update, and reads the update's text out of the last such record, as it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, final

from ....engine.events import Role
from ..protocol import Remark
from .files import Row

__all__ = ("FAILED", "LAST", "MENTIONED", "NONE", "OWN", "TYPED", "UNREAD", "Differences")

_EDIT: Final = "EDITOR_UPDATE"
_TYPED: Final = re.compile(r"EDITOR_UPDATE\(text=(.*)\)", re.DOTALL)

FAILED: Final = "the published analysis takes an edit that failed for an update"
MENTIONED: Final = "the published analysis takes the mention of an edit for an update"
LAST: Final = (
    "the published analysis reads an update's text out of the round's last mention of an edit, "
    "though that edit failed, or is none; here it is that of the last edit that succeeded"
)
TYPED: Final = (
    "the published analysis has an update's text as it was typed, or none where it cannot read it; "
    "here it is as the editor shows it, without quotes around it and signs for line ends"
)
UNREAD: Final = "the published analysis takes an edit for an update whose text nobody can tell"
OWN: Final = (
    "the published analysis lists the human's own last turn among the acts that followed it"
)
NONE: Final = "the published analysis finds no rounds, since the human took no turn; here it is one"


@final
class Differences:
    """Follows a log as the published analysis does, and as Duolog does.

    Args:
        session: id of the session.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._turns = 0
        self._own = ""
        self._found: list[Remark] = []
        self._begin()

    def _begin(self) -> None:
        """A stretch between turns of the human begins."""
        self._last: str | None = None
        self._edits = False
        self._ours: str | None = None
        self._why = MENTIONED

    def take(self, row: Row, role: Role, edited: str | None) -> None:
        """Takes the next record after the first.

        Args:
            row: the record.
            role: whose act it is.
            edited: the output after it, if it is an edit that succeeded.
        """
        action = row.action
        if role == "human" and "collaborative" in row.action_type:
            self._compare()
            self._turns += 1
            self._begin()
            self._own = action
        elif _EDIT in action:
            self._last = action
            self._edits = edited is not None
            if edited is not None:
                self._ours = edited
            elif action.lstrip().startswith(_EDIT):
                ok = row.action_status.startswith("succeeded")
                self._why = UNREAD if ok else FAILED

    def remarks(self) -> Iterator[Remark]:
        """What differs, once the log is at its end."""
        if not self._turns:
            yield self._remark(NONE)
            return
        if self._last is None and _EDIT in self._own:
            self._last = self._own
        self._compare()
        yield from self._found
        yield self._remark(OWN)

    def _compare(self) -> None:
        """Compares the counts of a stretch."""
        if self._last is None:
            return
        if self._ours is None:
            self._found.append(self._remark(self._why))
        elif not self._edits:
            self._found.append(self._remark(LAST))
        else:
            typed = _TYPED.fullmatch(self._last)
            if typed is None or typed.group(1) != self._ours:
                self._found.append(self._remark(TYPED))

    def _remark(self, what: str) -> Remark:
        return Remark("difference", what, f"round {self._turns + 1}", self._session)
