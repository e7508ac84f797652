"""Logs as other programs write them, small, and made up for the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from duolog.engine.events import Event, Forgotten, SessionOpened, Unknown
from duolog.engine.records import TRACE, Record
from duolog.interop.importers.protocol import Diagnostic, Foreign, Importer, Reading
from duolog.testing import records_of

__all__ = (
    "START",
    "collaboration",
    "events_of",
    "log_line",
    "read",
    "trace_of",
    "write_lines",
    "write_run",
)

Json = dict[str, Any]

START = "START(task_description=Plan it, query=twice. Here: x, query=Plan a trip.)"


def log_line(
    role: str,
    action: str,
    *,
    status: str = "succeeded",
    type: str = "environment",
    time: str = "2026-03-01 12:00:00",
    **more: object,
) -> Json:
    """A record of Collaborative Gym."""
    return {
        "role": role,
        "timestamp": time,
        "action": action,
        "action_status": status,
        "action_type": type,
        **more,
    }


def collaboration() -> list[Json]:
    """A session of Collaborative Gym in which all kinds of acts occur."""
    chat: list[Json] = [{"role": "user", "timestamp": "x", "message": "Plan a trip."}]
    seen: Json = {"search_output": {}, "distance_matrix_output": {}}
    state: Json = {"public": {"plan_editor": ""}, "private": {"an_agent": seen, "user": {}}}
    lines: list[Json] = []
    clock = iter(range(60))

    def record(role: str, action: str, **more: str) -> None:
        time = f"2026-03-01 12:00:{next(clock):02}"
        held = {"current_chat_history": chat, "current_observation": state}
        line = {**log_line(role, action, time=time, **more), **held}
        lines.append(json.loads(json.dumps(line)))

    def found(what: str) -> None:
        seen["search_output"] = {"query": "of what", "output": what}

    def said(role: str, message: str) -> None:
        chat.append({"role": role, "timestamp": "2026-03-01 12:00:30", "message": message})

    talk = {"type": "collaborative"}
    record("environment", START)
    found("two rooms")
    record("an_agent", "ACCOMMODATION_SEARCH(city='Bonn')")
    record("an_agent", 'SEND_TEAMMATE_MESSAGE(message="For\\nhow many?")', **talk)
    said("an_agent", "For\nhow many?")
    said("environment", "Idle for a long time. The agent should take an action.")
    record("user", "SEND_TEAMMATE_MESSAGE(message=Two, thanks)", **talk)
    said("user", "Two, thanks")
    record("an_agent", "EDITOR_UPDATE(Day 1)", status="failed (action_error: 'Day 1' invalid.)")
    said("environment", "[an_agent] takes an action but fails: 'Day 1' invalid.")
    state["public"]["plan_editor"] = "Day 1:\nBonn"
    record("an_agent", 'EDITOR_UPDATE(text="Day 1:\\nBonn")')
    found("two rooms")
    record("an_agent", 'ACCOMMODATION_SEARCH(city="Bonn")')
    pending = 'request_id="e", pending_action=EDITOR_UPDATE(text="Day 2")'
    record("an_agent", f"REQUEST_TEAMMATE_CONFIRM({pending})", **talk)
    record("user", "ACCEPT_CONFIRMATION(request_id=e)", **talk)
    state["public"]["plan_editor"] = "Day 2"
    record("an_agent", 'EDITOR_UPDATE(text="Day 2")')
    record("user", "REJECT_CONFIRMATION(request_id=e)", **talk)
    state["public"]["plan_editor"] = "Day 2, by train"
    record("user", "EDITOR_UPDATE(text=Day 2, by train)")
    record("user", "FINISH()")
    return lines


def write_lines(path: Path, lines: Sequence[Json]) -> Path:
    """Writes JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def write_run(directory: Path, lines: Sequence[Json], performance: Json | None = None) -> Path:
    """Writes a result directory of Collaborative Gym: the log and the files next to it."""
    write_lines(directory / "event_log.jsonl", lines)
    if performance is not None:
        text = json.dumps(performance, indent=4)
        (directory / "task_performance.json").write_text(text, encoding="utf-8")
    infos: dict[str, Json] = {
        "an_agent": {"lm": "m-1", "token_usage": {"prompt_tokens": 900, "completion_tokens": 40}},
        "simulated_user": {
            "planning_lm": "m-2",
            "executing_lm": "m-3",
            "token_usage": {
                "planning_lm": {"prompt_tokens": 100, "completion_tokens": 4},
                "executing_lm": {"prompt_tokens": 200, "completion_tokens": 8},
            },
            "persona": {"proactive_feedback": True, "proactive_action": False},
        },
    }
    for member, info in infos.items():
        (directory / member).mkdir()
        (directory / member / "info.json").write_text(json.dumps(info), encoding="utf-8")
    return directory


def read(
    importer: Importer, source: Path, reading: Reading | None = None
) -> tuple[list[Foreign], list[Diagnostic]]:
    """All that an importer reads, events and diagnostics apart."""
    events: list[Foreign] = []
    diagnostics: list[Diagnostic] = []
    for found in importer.read(source, reading or Reading()):
        if isinstance(found, Diagnostic):
            diagnostics.append(found)
        else:
            events.append(found)
    return events, diagnostics


def trace_of(found: Sequence[Foreign]) -> list[Record]:
    """The trace of the only session, as records."""
    [session] = {one.session for one in found}
    drafts = [one.draft for one in found if one.stream == TRACE]
    return records_of(*drafts, session=session)


def events_of(found: Sequence[Foreign]) -> Iterator[tuple[str, Event | Unknown | Forgotten]]:
    """Actors and events of the trace, without the opening."""
    for record in trace_of(found):
        if not isinstance(record.event, SessionOpened):
            yield record.actor, record.event
