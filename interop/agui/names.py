"""Names on both sides: AG-UI's event types and their names in a log."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, TypeAlias

from ...engine.events import JSON

__all__ = (
    "ADVICE",
    "ALONE",
    "KEPT",
    "AguiEvent",
    "call_id",
    "id_in",
    "interrupt_id",
    "message_id",
    "run_id",
)

AguiEvent: TypeAlias = dict[str, JSON]
"""An event as JSON has it, its fields in camel case."""

KEPT: Final = "agui."
"""Prefix for kinds of events that a log keeps as received, e.g. ``agui.CUSTOM``."""

ALONE: Final[Mapping[str, Mapping[str, type]]] = {
    "STEP_STARTED": {"stepName": str},
    "STEP_FINISHED": {"stepName": str},
    "ACTIVITY_SNAPSHOT": {"messageId": str, "activityType": str, "content": dict},
    "ACTIVITY_DELTA": {"messageId": str, "activityType": str, "patch": list},
    "REASONING_START": {"messageId": str},
    "REASONING_END": {"messageId": str},
    "REASONING_ENCRYPTED_VALUE": {"subtype": str, "entityId": str, "encryptedValue": str},
    "SUBAGENT_STARTED": {"subagentRunId": str, "name": str},
    "SUBAGENT_FINISHED": {"subagentRunId": str},
    "SUBAGENT_ERROR": {"subagentRunId": str, "message": str},
    "RAW": {"event": object},
    "CUSTOM": {"name": str, "value": object},
}
"""The types of version 1.0 that a log keeps as they came, and that make sense as they are; with the
fields that they need."""

ADVICE: Final[Mapping[str, str]] = {
    "ChatAdvised": "duolog.chat",
    "EffortUpdated": "duolog.effort",
    "OversightUpdated": "duolog.oversight",
    "RatingUpdated": "duolog.rating",
    "RoundClosed": "duolog.round-closed",
    "RoundOpened": "duolog.round-opened",
    "ScorerDown": "duolog.scorer-down",
    "SessionEnded": "duolog.session-ended",
    "StageChanged": "duolog.stage",
    "StopAdvice": "duolog.stop",
    "StopWithdrawn": "duolog.stop-withdrawn",
    "UtilityUpdated": "duolog.utility",
}
"""Names of the CUSTOM events that say what scoring makes of a session."""

_LONGEST: Final = 160


def message_id(ident: str) -> str:
    """Id, in the log, of the event that a message came to; a tool's result is a message too."""
    return f"message/{_short(ident)}"


def call_id(ident: str) -> str:
    """Id, in the log, of a tool call."""
    return f"call/{_short(ident)}"


def run_id(ident: str) -> str:
    """Id, in the log, of a run's beginning."""
    return f"run/{_short(ident)}"


def interrupt_id(ident: str) -> str:
    """Id, in the log, of a question that a run ended with."""
    return f"interrupt/{_short(ident)}"


def id_in(ident: str | None, kind: str) -> str | None:
    """The id of AG-UI's in an id of the log's, of ``message``, ``call`` or ``interrupt``."""
    if ident is None or not ident.startswith(f"{kind}/"):
        return None
    return ident[len(kind) + 1 :]


def _short(ident: str) -> str:
    if len(ident) <= _LONGEST:
        return ident
    return f"{ident[:_LONGEST]}~{hashlib.sha256(ident.encode()).hexdigest()[:12]}"
