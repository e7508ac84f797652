"""What the rows of a list show of rounds: folded from records, and kept for the rows looked at last."""

from __future__ import annotations

from typing import Final, final

import anyio

from ....engine.log.contract import EventLog, SessionSummary
from ....engine.log.session_states import SessionStates
from ....scoring.listing.rows import RowFold, SessionRow
from ....scoring.trajectory.options import Options

__all__ = ("MeasuredRows",)

_KEPT: Final = 512


@final
class MeasuredRows:
    """Rows with their rounds, each folded on from where it was when its session grew.

    Args:
        log: the log.
        options: how sessions are scored.
    """

    def __init__(self, log: EventLog, options: Options) -> None:
        self._log = log
        self._options = options
        self._folds: SessionStates[_Fold] = SessionStates(_KEPT)

    async def row(self, summary: SessionSummary, measure: str) -> SessionRow:
        """The row of a session, no older than its summary. However many ask, it is read once.

        Raises:
            LogError: the log cannot be read.
        """
        session = summary.session
        name = f"{measure}/{session}"
        fold = self._folds.get(name)
        if fold is None:
            fold = _Fold(RowFold(session, self._options, measure))
        self._folds.keep(name, fold)
        async with fold.lock:
            if fold.row is not None and fold.row.since >= summary.position:
                return fold.row
            try:
                fold.row = await fold.fold.read(self._log)
                return fold.row
            except BaseException:
                self._folds.drop(name)  # it may have taken only a part: it is folded anew
                raise


@final
class _Fold:
    """A fold that one request at a time goes on with."""

    def __init__(self, fold: RowFold) -> None:
        self.fold = fold
        self.row: SessionRow | None = None
        self.lock = anyio.Lock()
