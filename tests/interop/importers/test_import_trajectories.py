"""Trajectories of coding agents: ATIF and SWE-agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    MessageSent,
    ModelCalled,
    NoteTaken,
    SessionClosed,
)
from duolog.interop.importers.atif import AtifImporter
from duolog.interop.importers.registry import recognise
from duolog.interop.importers.swe_agent import SweAgentImporter
from duolog.testing import check_importer
from foreign_logs import events_of, read

Json = dict[str, Any]

ATIF: Json = {
    "schema_version": "ATIF-v1.5",
    "session_id": "s",
    "agent": {"name": "a", "model_name": "m"},
    "steps": [
        {"source": "system", "message": "You are."},
        {"source": "user", "message": "Do it."},
        {
            "source": "agent",
            "message": "Both.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {"tool_call_id": "1", "function_name": "look", "arguments": {"at": "x"}},
                {"tool_call_id": "2", "function_name": "wait", "arguments": {}},
            ],
            "observation": {"results": [{"content": "w"}, {"source_call_id": "1", "content": "l"}]},
            "metrics": {"prompt_tokens": 5, "completion_tokens": 1, "cost_usd": 0.5},
        },
        {
            "source": "agent",
            "message": "{oops",
            "observation": {"results": [{"content": "no parse"}]},
            "metrics": {"prompt_tokens": 7},
            "is_copied_context": True,
        },
    ],
}

OLD: list[Json] = [
    {"role": "system", "content": "SETTING"},
    {"role": "user", "content": "A demonstration", "is_demo": True},
    {"role": "user", "content": "The issue"},
    {"role": "assistant", "content": "x", "thought": "Look.", "action": "open a.py\n"},
    {"role": "user", "content": "1: pass"},
    {"role": "assistant", "content": "x", "thought": "", "action": "submit"},
]
STATS: Json = {"tokens_sent": 10, "tokens_received": 2, "instance_cost": 0.1}


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_results_of_atif_belong_to_their_calls(tmp_path: Path) -> None:
    events, diagnostics = read(AtifImporter(), write(tmp_path / "t.json", ATIF))
    assert not diagnostics
    found = [event for _, event in events_of(events)]
    assert [event.name for event in found if isinstance(event, ActionTaken)] == ["look", "wait"]
    outcomes = {
        event.action: event.observation for event in found if isinstance(event, ActionResolved)
    }
    assert [outcomes[version] for version in sorted(outcomes)] == ["l", "w"]
    said = [(who, event.text) for who, event in events_of(events) if isinstance(event, MessageSent)]
    assert said == [
        ("system", "You are."),
        ("user", "Do it."),
        ("assistant", "Both."),
        ("assistant", "{oops"),
        ("system", "no parse"),
    ]
    assert [event.tokens.prompt for event in found if isinstance(event, ModelCalled)] == [5]


def test_subagents_in_a_trajectory_are_actors_of_their_own_where_they_were_called(
    tmp_path: Path,
) -> None:
    helper: Json = {
        "trajectory_id": "child",
        "agent": {"name": "researcher", "model_name": "small"},
        "steps": [
            {"source": "user", "message": "Look it up."},
            {"source": "agent", "message": "Found.", "metrics": {"completion_tokens": 2}},
        ],
    }
    refers = {"content": "ok", "subagent_trajectory_ref": [{"trajectory_id": "child"}]}
    calls = [{"tool_call_id": "1", "function_name": "delegate"}]
    steps = [
        {"source": "user", "message": [{"type": "text", "text": "Do it."}, {"type": "image"}]},
        {"source": "agent", "tool_calls": calls, "observation": {"results": [refers]}},
        {"source": "agent", "message": "Done.", "reasoning_content": "Well."},
    ]
    whole: Json = {"schema_version": "ATIF-v1.7", "steps": steps}
    whole["subagent_trajectories"] = [helper]
    whole["final_metrics"] = {"total_prompt_tokens": 9, "total_completion_tokens": 3}
    events, diagnostics = read(AtifImporter(), write(tmp_path / "t.json", whole))
    assert [one.what for one in diagnostics] == [
        "left out: a reference to the trajectory of a subagent"
    ]
    said = [(who, event.text) for who, event in events_of(events) if isinstance(event, MessageSent)]
    assert said == [
        ("user", "Do it.\n[image]"),
        ("system", "Look it up."),
        ("researcher", "Found."),
        ("assistant", "Done."),
    ]
    assert [who for who, event in events_of(events) if isinstance(event, NoteTaken)] == [
        "assistant"
    ]
    used = [
        (who, event.tokens.prompt, event.tokens.completion)
        for who, event in events_of(events)
        if isinstance(event, ModelCalled)
    ]
    assert used == [("researcher", None, 2)]


def test_totals_count_where_no_step_counts(tmp_path: Path) -> None:
    steps = [{"source": "agent", "message": "Done."}]
    whole = {
        "schema_version": "ATIF-v1.5",
        "steps": steps,
        "final_metrics": {"total_prompt_tokens": 9},
    }
    events, _ = read(AtifImporter(), write(tmp_path / "t.json", whole))
    calls = [event for _, event in events_of(events) if isinstance(event, ModelCalled)]
    assert [(call.tokens.prompt, call.purpose) for call in calls] == [(9, "act (all calls)")]


def test_a_trajectory_without_a_history_has_the_same_in_its_steps(tmp_path: Path) -> None:
    steps: list[Json] = [
        {"thought": "Look.", "action": "open a.py\n", "observation": "1: pass"}
        | {
            "query": [
                {"role": "system", "content": "SETTING"},
                {"role": "user", "content": "The issue"},
            ]
        },
        {"thought": "", "action": "submit", "observation": None},
    ]
    info = {"exit_status": "submitted", "model_stats": {"tokens_sent": 0, "tokens_received": 0}}
    events, _ = read(
        SweAgentImporter(), write(tmp_path / "t.traj", {"trajectory": steps, "info": info})
    )
    kinds = [type(event) for _, event in events_of(events)]
    assert kinds == [
        MessageSent,
        MessageSent,
        NoteTaken,
        ActionTaken,
        ActionResolved,
        ActionTaken,
        ActionResolved,  # cancelled by the end
        SessionClosed,
    ]
    with pytest.raises(InvalidInput, match="lacks a history"):
        read(SweAgentImporter(), write(tmp_path / "u.traj", {"info": info}))


def test_an_old_trajectory_of_swe_agent_answers_as_the_user(tmp_path: Path) -> None:
    info = {"exit_status": "submitted", "model_stats": STATS}
    source = write(tmp_path / "t.traj", {"history": OLD, "info": info})
    events, diagnostics = read(SweAgentImporter(), source)
    assert [diagnostic.kind for diagnostic in diagnostics] == ["difference"]
    found = [event for _, event in events_of(events)]
    kinds = [type(event) for event in found]
    assert kinds == [
        MessageSent,
        MessageSent,
        NoteTaken,
        ActionTaken,
        ActionResolved,
        ActionTaken,
        ModelCalled,
        ActionResolved,  # cancelled by the end
        SessionClosed,
    ]
    humans = [one.draft.event for one in events if one.draft.role == "human"]
    assert humans == [MessageSent(text="The issue")]


@pytest.mark.parametrize("calls", [False, True])
def test_messages_of_mini_swe_agent_are_a_trajectory_and_no_chat(
    calls: bool, tmp_path: Path
) -> None:
    used = {"model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    call = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    acted: Json = {"content": "I look.", "tool_calls": [call]}
    gave: Json = {"role": "tool", "tool_call_id": "c1", "content": "a.py"}
    if not calls:
        acted = {"content": "I look.\n\n```bash\nls\n```"}
        gave = {"role": "user", "content": [{"type": "text", "text": "a.py"}]}
    messages = [
        {"role": "system", "content": "SETTING"},
        {"role": "user", "content": "The issue"},
        {"role": "assistant", **acted, "extra": {"response": used}},
        gave,
        {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}},
    ]
    info = {"exit_status": "Submitted", "model_stats": {"instance_cost": 0.1, "api_calls": 1}}
    whole = {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}
    source = write(tmp_path / "t.traj.json", whole)
    assert getattr(recognise(source), "name", None) == "swe-agent"
    events, diagnostics = read(SweAgentImporter(), source)
    assert diagnostics == []
    assert [type(event) for _, event in events_of(events)] == [
        MessageSent,
        MessageSent,
        ModelCalled,
        NoteTaken,
        ActionTaken,
        ActionResolved,
        SessionClosed,
    ]
    assert [one.draft.event for one in events if one.draft.role == "human"] == [
        MessageSent(text="The issue")
    ]
    (taken,) = (event for _, event in events_of(events) if isinstance(event, ActionTaken))
    assert taken.arguments == {"command": "ls"}


def test_broken_steps_and_messages_are_named(tmp_path: Path) -> None:
    broken = {**ATIF, "steps": [*ATIF["steps"], {"message": "nobody's"}]}
    _, [diagnostic] = read(AtifImporter(), write(tmp_path / "t.json", broken))
    assert diagnostic.where.endswith(", step 5")
    traj = {"history": [*OLD, {"content": 1}]}
    _, diagnostics = read(SweAgentImporter(), write(tmp_path / "t.traj", traj))
    assert [one.where.rpartition(", ")[2] for one in diagnostics if one.kind == "problem"] == [
        "message 7"
    ]


@pytest.mark.asyncio
async def test_the_importers_keep_the_contract(tmp_path: Path) -> None:
    await check_importer(AtifImporter(), write(tmp_path / "t.json", ATIF))
    source = write(tmp_path / "t.traj", {"history": OLD, "info": {"exit_status": "submitted"}})
    await check_importer(SweAgentImporter(), source)
