"""What is known of a session, as a row of the table of summaries."""

from __future__ import annotations

import asyncpg
import msgspec

from ...rounds import RoundCount
from ..summary import SessionState

__all__ = ("progress_of", "state_of", "state_row")


def state_of(row: asyncpg.Record) -> SessionState:
    """What a row says of a session."""
    state = SessionState(row["session"], row["key"])
    state.task, state.instance = row["task"], row["instance"]
    state.group = msgspec.json.decode(row["labels"], type=dict[str, str])
    state.origin, state.state = row["origin"], row["state"]
    state.events, state.version = row["events"], row["version"]
    state.counted = RoundCount(row["rounds"], row["acted"])
    state.utility, state.evaluated = row["utility"], row["evaluated"]
    state.opened, state.last, state.position = row["opened"], row["last"], row["position"]
    state.salt = row["salt"]
    return state


def state_row(state: SessionState) -> tuple[object, ...]:
    """A session's values in the order in which the statements name them."""
    return (
        state.key,
        state.session,
        state.task,
        state.instance,
        msgspec.json.encode(state.group).decode(),
        state.origin,
        state.state,
        state.events,
        state.version,
        state.counted.number,
        state.counted.acted,
        state.utility,
        state.evaluated,
        state.opened,
        state.last,
        state.position,
        state.salt,
    )


def progress_of(state: SessionState) -> tuple[float, ...]:
    """What of a session changes with each append."""
    counted = state.counted
    return (
        state.key,
        state.events,
        state.version,
        counted.number,
        counted.acted,
        state.last,
        state.position,
    )
