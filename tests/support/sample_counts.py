"""Counts of an imported session's contents, to compare with counts made without Duolog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    MessageSent,
    ModelCalled,
    SessionOpened,
)
from duolog.engine.records import Record
from duolog.engine.rounds import RoundProjector
from duolog.interop.importers.protocol import Diagnostic, Importer, Reading
from foreign_logs import read, trace_of

__all__ = (
    "ANSWER",
    "ONE_CALL",
    "QUESTION",
    "counted",
    "counts_of",
    "differences",
    "expected_of",
    "problems_of",
)

QUESTION, ANSWER = "Find a train", "At 8."
ONE_CALL: dict[str, Any] = {
    "human_messages": 1,
    "agent_messages": 1,
    "tool_calls": 1,
    "tool_results": 1,
    "rounds": 1,
    "first_human": QUESTION,
    "last_agent": ANSWER,
    "input_tokens": 30,
    "output_tokens": 4,
}
"""The counts of a question, a call with its result, and an answer, by two calls of a model."""

_SHORT = 80


def expected_of(sample: Path) -> list[dict[str, Any]]:
    """The expected counts of each session of a sample."""
    held = msgspec.json.decode(
        sample.with_name(sample.name + ".expected.json").read_bytes(), type=dict[str, Any]
    )
    sessions: list[dict[str, Any]] = held["session"]
    assert len(sessions) == held["sessions"]
    return sessions


def problems_of(importer: Importer, sample: Path) -> list[Diagnostic]:
    """The importer's diagnostics about unreadable parts."""
    _, diagnostics = read(importer, sample, Reading())
    return [diagnostic for diagnostic in diagnostics if diagnostic.kind == "problem"]


def counted(importer: Importer, sample: Path) -> dict[str, dict[str, Any]]:
    """The counts of the imported records, by session, in the order of the source."""
    events, _ = read(importer, sample, Reading())
    sessions = dict.fromkeys(
        event.session
        for event in events
        if isinstance(event.draft.event, SessionOpened) and event.draft.event.forked_from is None
    )
    return {
        session: counts_of(trace_of([one for one in events if one.session == session]))
        for session in sessions
    }


def differences(expected: dict[str, Any], found: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The expected and the found value of each key for which they differ."""
    return {
        key: (value, found[key])
        for key, value in expected.items()
        if key != "sample" and not _agrees(key, value, found)
    }


def _agrees(key: str, value: object, found: dict[str, Any]) -> bool:
    if key == "first_human_contains":
        found[key] = found["whole_first_human"]
        return str(value) in found[key]
    if key == "last_agent_startswith":
        found[key] = found["last_agent"]
        return bool(found[key].startswith(str(value)[:_SHORT]))
    return bool(found[key] == value)


def counts_of(trace: Sequence[Record]) -> dict[str, Any]:
    """The counts of a session's contents."""
    opened = trace[0].event
    assert isinstance(opened, SessionOpened)
    agents = [one for one in opened.participants if one.role == "agent"]
    main = agents[0].name if agents else ""
    humans = [text for record, text in _said(trace) if record.role == "human"]
    texts = [text for record, text in _said(trace) if record.actor == main and text.strip()]
    calls = {
        record.version
        for record in trace
        if isinstance(record.event, ActionTaken) and record.actor == main
    }
    unseen = {
        record.version
        for record in trace
        if isinstance(record.event, ActionTaken) and record.role == "environment"
    }
    results = [
        record.event
        for record in trace
        if isinstance(record.event, ActionResolved)
        and record.event.action in calls | unseen
        and record.event.outcome != "cancelled"
    ]
    asked = [
        record.event
        for record in trace
        if isinstance(record.event, ModelCalled) and record.actor == main
    ]
    models = list(dict.fromkeys(call.model for call in asked if call.model != "unknown"))
    tokens = [call.tokens for call in asked]
    rounds = RoundProjector()
    for record in trace:
        rounds.feed(record)
    return {
        "human_messages": len(humans),
        "agent_messages": len(texts),
        "tool_calls": len(calls),
        "tool_results": len(results),
        "failed_results": sum(result.outcome == "failed" for result in results),
        "rounds": rounds.number if rounds.acted else 0,
        "first_human": humans[0].strip()[:_SHORT] if humans else None,
        "whole_first_human": humans[0] if humans else "",
        "last_agent": texts[-1].strip()[:_SHORT] if texts else None,
        "models": models or [one.model for one in agents[:1] if one.model],
        "input_tokens": _sum(one.prompt for one in tokens),
        "output_tokens": _sum(one.completion for one in tokens),
        "cache_read_tokens": _sum(one.cached for one in tokens),
        "cached_input_tokens": _sum(one.cached for one in tokens),
        "cache_creation_tokens": _sum(one.cache_creation for one in tokens),
    }


def _said(trace: Sequence[Record]) -> Iterator[tuple[Record, str]]:
    for record in trace:
        if isinstance(record.event, MessageSent):
            yield record, record.event.text


def _sum(values: Iterator[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
