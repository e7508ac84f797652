"""A consumer that writes to two sessions about each record: both outputs are there, once, or neither counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, final

from ...engine.events import MessageSent
from ...engine.log.follower import Output
from ...engine.records import TRACE, Draft, Record
from ..tools import require

__all__ = ("RELAY", "Relay", "check_relay")

RELAY: Final = "relay"
"""The name of the consumer, and how the names of its sessions begin."""

_SESSIONS: Final = ("relay.0", "relay.1")


@final
class Relay:
    """Writes the position of each record to two sessions."""

    name = RELAY
    version = "1"

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        """What is to be recorded of the next records; nothing of its own."""
        said = [record.position for record in records if not record.session.startswith(RELAY)]
        return [
            Output(session, TRACE, [_draft(at) for at in said]) for session in _SESSIONS if said
        ]


def _draft(position: int) -> Draft:
    text = str(position)
    return Draft(MessageSent(text=text), RELAY, "agent", 1.0, f"of {text}")


def check_relay(records: Sequence[Record], checkpoint: int) -> None:
    """Each record up to the checkpoint is in both sessions, and none is there twice.

    Args:
        records: all of the log.
        checkpoint: of the consumer.
    """
    for session in _SESSIONS:
        said = Counter(record.caller_id for record in records if record.session == session)
        twice = [ident for ident, count in said.items() if count > 1]
        require(not twice, f"a consumer records nothing twice: {twice}")
        left_out = [
            record.position
            for record in records
            if record.position <= checkpoint
            and not record.session.startswith(RELAY)
            and f"of {record.position}" not in said
        ]
        require(not left_out, f"a consumer leaves nothing out: {left_out}")
