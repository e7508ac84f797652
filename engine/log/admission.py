"""What every store decides alike before it takes an append: is it still open, at the right version,
and is the checkpoint where it is expected?
"""

from __future__ import annotations

from ..errors import CheckpointConflict, SessionClosedError, VersionConflict
from .append import Append
from .contract import Advance
from .summary import SessionState

__all__ = ("advances", "check_admitted")


def check_admitted(append: Append, state: SessionState, version: int) -> None:
    """Refuses an append that its session or stream does not take.

    Args:
        append: the append.
        state: of its session.
        version: of its stream; 0 for a new one.

    Raises:
        SessionClosedError: a trace event after the close, or contents of a forgotten session.
        VersionConflict: the stream is at another version.
    """
    if state.state != "open" and append.envelopes and state.refuses(append):
        raise SessionClosedError(append.session)
    if append.expected is not None and append.expected != version:
        raise VersionConflict(append.session, append.stream, append.expected, version)


def advances(advance: Advance, actual: int, *, redelivered: bool) -> bool:
    """Whether a checkpoint is to be moved.

    Args:
        advance: where from and to.
        actual: where it is.
        redelivered: whether what it belongs to is in the log already; then it may be there, too.

    Raises:
        CheckpointConflict: it is not where it is expected.
    """
    if redelivered and actual == advance.position:
        return False
    if actual != advance.expected:
        raise CheckpointConflict(advance.consumer, advance.version, advance.expected, actual)
    return True
