"""Trajectories of τ-bench and results of τ²-bench."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
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
    Participant,
    SessionClosed,
    SessionOpened,
    Tokens,
    UtilityScored,
)
from duolog.engine.records import TRACE
from duolog.interop.importers.json_sniff import shape_of
from duolog.interop.importers.protocol import Diagnostic, Foreign, Reading
from duolog.interop.importers.tau import TauImporter
from duolog.testing import check_importer
from foreign_logs import events_of, read, trace_of

Json = dict[str, Any]

CALL = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": '{"id":1}'}}
RUN: Json = {
    "task_id": 4,
    "reward": 1.0,
    "info": {
        "task": {
            "user_id": "u",
            "actions": [{"name": "cancel", "kwargs": {}}],
            "instruction": "You are u.",
            "outputs": [],
        },
        "source": "user",
        "user_cost": 0.25,
        "reward_info": {"reward": 1.0, "info": {"r_actions": 1.0, "gt_data_hash": "x"}},
    },
    "traj": [
        {"role": "system", "content": "# Retail agent policy\n\nBe kind."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "name": "look_up", "content": "Error: none"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "name": "look_up", "content": "found"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "###STOP###"},
    ],
    "trial": 2,
}
RESULTS: Json = {
    "timestamp": "2026-03-01T12:10:00.000001",
    "info": {
        "git_commit": "abc",
        "num_trials": 1,
        "user_info": {"implementation": "user_simulator", "llm": "m-user", "llm_args": {}},
        "agent_info": {"implementation": "llm_agent", "llm": "m-agent", "llm_args": None},
        "environment_info": {"domain_name": "telecom", "policy": "Be quick.", "tool_defs": None},
        "seed": 300,
    },
    "tasks": [
        {
            "id": "t-1",
            "description": None,
            "user_scenario": {"persona": None, "instructions": {"reason_for_call": "no signal"}},
            "ticket": "No signal.",
            "evaluation_criteria": {"actions": [{"name": "reset"}], "reward_basis": ["DB"]},
        }
    ],
    "simulations": [
        {
            "id": "f00d",
            "task_id": "t-1",
            "start_time": "2026-03-01T12:00:00",
            "end_time": "2026-03-01T12:01:00",
            "duration": 60.0,
            "termination_reason": "user_stop",
            "agent_cost": 0.01,
            "reward_info": {"reward": 0.5, "reward_breakdown": {"DB": 1.0, "ACTION": 0.5}},
            "messages": [
                {
                    "role": "assistant",
                    "content": "Hi!",
                    "tool_calls": None,
                    "turn_idx": 0,
                    "timestamp": "2026-03-01T12:00:01",
                    "cost": 0.0,
                    "usage": None,
                },
                {
                    "role": "user",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "u1",
                            "name": "toggle",
                            "arguments": {"on": True},
                            "requestor": "user",
                        }
                    ],
                    "timestamp": "2026-03-01T12:00:05",
                    "cost": 0.002,
                    "usage": {"completion_tokens": 7, "prompt_tokens": 70},
                    "generation_time_seconds": 1.5,
                },
                {
                    "id": "u1",
                    "role": "tool",
                    "content": "on",
                    "requestor": "user",
                    "error": False,
                    "timestamp": "2026-03-01T12:00:06",
                },
                {
                    "role": "assistant",
                    "content": "One moment.",
                    "tool_calls": [
                        {"id": "a1", "name": "get", "arguments": {}, "requestor": "assistant"},
                        {
                            "id": "a2",
                            "name": "get",
                            "arguments": {"x": 1},
                            "requestor": "assistant",
                        },
                    ],
                    "timestamp": "2026-03-01T12:00:07",
                    "cost": 0.0,
                    "usage": {"completion_tokens": 5, "prompt_tokens": 50},
                },
                {
                    "role": "tool",
                    "tool_messages": [
                        {"id": "a1", "role": "tool", "content": "no", "error": True},
                        {"id": "a2", "role": "tool", "content": None, "error": True},
                    ],
                },
                {"role": "user", "content": "###STOP###", "timestamp": "2026-03-01T12:00:30"},
            ],
            "ticks": None,
            "trial": 0,
            "seed": 42,
        }
    ],
}
NOON = 1_772_366_400.0


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write(tmp_path / "runs.json", [RUN, run_with(trial=1, traj=[])])


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write(tmp_path / "results.json", RESULTS)


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path


def imported(
    value: object, directory: Path, name: str = "file.json"
) -> tuple[list[Foreign], list[Diagnostic]]:
    path = write(directory / name, value)
    assert TauImporter().recognises(path, shape_of(path))
    return read(TauImporter(), path)


def opening_of(found: list[Foreign]) -> SessionOpened:
    opened = trace_of(found)[0].event
    assert isinstance(opened, SessionOpened)
    return opened


def score_of(found: list[Foreign]) -> UtilityScored:
    [scored] = [one.draft.event for one in found if one.stream != TRACE]
    assert isinstance(scored, UtilityScored)
    return scored


def close_of(found: list[Foreign]) -> tuple[str, str, str]:
    last = trace_of(found)[-1].event
    assert isinstance(last, SessionClosed)
    return last.reason, last.by, last.detail


def run_with(info: Json | None = None, **changes: object) -> Json:
    run = copy.deepcopy(RUN)
    run["info"] |= info or {}
    return run | changes


# --- τ-bench --------------------------------------------------------------------------------------


def test_a_run_becomes_a_session(tmp_path: Path) -> None:
    found, diagnostics = imported([RUN], tmp_path)
    assert diagnostics == []
    action = ActionTaken(name="look_up", arguments={"id": 1})
    assert list(events_of(found)) == [
        ("user", MessageSent(text="Hello")),
        ("assistant", action),
        (
            "environment",
            ActionResolved(
                action=3, outcome="failed", observation="Error: none", error="Error: none"
            ),
        ),
        ("assistant", action),
        ("environment", ActionResolved(action=5, outcome="ok", observation="found")),
        ("assistant", MessageSent(text="Done.")),
        ("user", MessageSent(text="###STOP###")),
        ("user", ModelCalled(model="unknown", purpose="act (all calls)", request="", cost=0.25)),
        ("user", SessionClosed(reason="finished", by="user", detail="###STOP###")),
    ]
    scored = score_of(found)
    assert (scored.value, scored.round, scored.until) == (1.0, 2, 8)
    assert (scored.parts, scored.rounds) == ({"r_actions": 1.0}, "handoff")


def test_each_knows_what_is_its_own(tmp_path: Path) -> None:
    found, _ = imported([RUN], tmp_path)
    opened = opening_of(found)
    assert (opened.task, opened.instance, opened.clock) == ("tau-retail", "4", "virtual")
    assert opened.config == {"imported": {"format": "tau"}, "trial": 2, "utility": "tau"}
    assert opened.private == {
        "user": {"user_id": "u", "instruction": "You are u."},
        "assistant": {"policy": "# Retail agent policy\n\nBe kind."},
        "tau": {"actions": [{"name": "cancel", "kwargs": {}}], "outputs": []},
    }
    assert opened.participants == (
        Participant(name="user", role="human", policy="simulated"),
        Participant(name="assistant", role="agent"),
    )


def test_the_name_of_a_file_says_who_played(tmp_path: Path) -> None:
    name = "tool-calling-gpt-4o-2024-0.0_range_0--1_user-o3-mini-llm_0301120000.json"
    found, _ = imported([RUN], tmp_path, name)
    assert opening_of(found).participants == (
        Participant(name="user", role="human", policy="llm", model="o3-mini"),
        Participant(name="assistant", role="agent", policy="tool-calling", model="gpt-4o-2024"),
    )


@pytest.mark.parametrize(
    ("run", "ending"),
    [
        (RUN, ("finished", "user", "###STOP###")),
        (
            run_with(traj=RUN["traj"][:6], info={"source": "transfer_to_human_agents"}),
            ("ended", "assistant", "transfer_to_human_agents"),
        ),
        (
            run_with(traj=[*RUN["traj"][:-1], {"role": "user", "content": "###TRANSFER###"}]),
            ("ended", "user", ""),
        ),
        (
            run_with(traj=RUN["traj"][:7], info={"reward_info": None}, reward=0.0),
            ("limit", "environment", "nobody ended it: a limit on steps, as it seems"),
        ),
        (
            run_with(traj=[], info={"error": "no key", "reward_info": None}, reward=0.0),
            ("failed", "environment", "the run broke off: no key"),
        ),
    ],
)
def test_how_a_run_ends(run: Json, ending: tuple[str, str, str], tmp_path: Path) -> None:
    found, _ = imported([RUN, run][1:], tmp_path)
    assert close_of(found) == ending


def test_calls_in_flight_are_cancelled(tmp_path: Path) -> None:
    found, _ = imported([run_with(traj=RUN["traj"][:5])], tmp_path)
    assert [event for _, event in events_of(found)][-2] == ActionResolved(
        action=5, outcome="cancelled"
    )


@pytest.mark.parametrize(
    ("changes", "value", "missing"),
    [
        ({"reward": 0}, 0.0, None),
        ({"reward": None}, None, "there is no reward"),
        ({"reward": 3}, None, "the reward 3 is not in [0, 1]"),
        ({"reward": 0.0, "info": {"error": "x"}}, None, "the run broke off: x"),
    ],
)
def test_a_reward_that_is_none_is_missing(
    changes: Json, value: float | None, missing: str | None, tmp_path: Path
) -> None:
    scored = score_of(imported([run_with(**changes)], tmp_path)[0])
    assert (scored.value, scored.missing) == (value, missing)


def test_calls_that_are_written_in_messages(tmp_path: Path) -> None:
    def acts(thought: str, **action: object) -> Json:
        return {"role": "assistant", "content": f"{thought}Action:\n{json.dumps(action)}"}

    traj = [
        {"role": "system", "content": '# Airline Agent Policy\n#Available tools\n[{"x": 1}]'},
        {"role": "user", "content": "API output: what is that?"},
        acts("Reasoning:\nI look.\n", name="get", arguments={"id": "a"}),
        {"role": "user", "content": "API output: Error: no such id"},
        acts("", name="respond", arguments={"content": "It is gone."}),
        {"role": "user", "content": "API output: you mean?"},
        {"role": "assistant", "content": "Reasoning:\nHm.\nAction:\nSorry {"},
        {"role": "user", "content": "Thanks ###STOP###"},
    ]
    found, diagnostics = imported([run_with(traj=traj)], tmp_path)
    assert diagnostics == []
    assert [event for _, event in events_of(found)][:-2] == [
        MessageSent(text="API output: what is that?"),
        NoteTaken(text="I look."),
        ActionTaken(name="get", arguments={"id": "a"}),
        ActionResolved(
            action=4,
            outcome="failed",
            observation="Error: no such id",
            error="Error: no such id",
        ),
        MessageSent(text="It is gone."),
        MessageSent(text="API output: you mean?"),
        NoteTaken(text="Hm."),
        MessageSent(text="Sorry {"),
        MessageSent(text="Thanks ###STOP###"),
    ]


def test_a_run_has_one_name_wherever_it_stands(tmp_path: Path) -> None:
    first, _ = imported([RUN], tmp_path)
    second, _ = imported([run_with(trial=3), RUN], tmp_path, "other.json")
    (tmp_path / "lines.jsonl").write_text(json.dumps(RUN) + "\n", encoding="utf-8")
    third, _ = read(TauImporter(), tmp_path / "lines.jsonl")
    names = [list(dict.fromkeys(one.session for one in found)) for found in (first, second, third)]
    assert names[0] == names[1][1:] == names[2]
    assert names[0][0].startswith("tau-retail-4-2-")


def test_broken_runs_are_reported(tmp_path: Path) -> None:
    odd = run_with(traj=[*RUN["traj"], {"role": "robot", "content": "x"}])
    found, diagnostics = imported([RUN, {"task_id": 1, "reward": 0, "traj": 3}, odd], tmp_path)
    where = tmp_path / "file.json"
    assert [(one.kind, one.where) for one in diagnostics] == [
        ("problem", f"{where}, element 2"),
        ("problem", f"{where}, element 3, message 9"),
    ]
    assert len({one.session for one in found}) == 2


# --- τ²-bench -------------------------------------------------------------------------------------


def simulation_with(**changes: object) -> Json:
    results = copy.deepcopy(RESULTS)
    results["simulations"][0] |= changes
    return results


def test_a_simulation_becomes_a_session(tmp_path: Path) -> None:
    found, diagnostics = imported(RESULTS, tmp_path)
    assert diagnostics == []
    assert {one.session for one in found} == {"tau-f00d"}
    assert list(events_of(found)) == [
        ("assistant", MessageSent(text="Hi!")),
        (
            "user",
            ModelCalled(
                model="m-user",
                purpose="act",
                request="",
                tokens=Tokens(prompt=70, completion=7),
                latency=1.5,
                cost=0.002,
            ),
        ),
        ("user", ActionTaken(name="toggle", arguments={"on": True})),
        ("environment", ActionResolved(action=4, outcome="ok", observation="on")),
        (
            "assistant",
            ModelCalled(
                model="m-agent", purpose="act", request="", tokens=Tokens(prompt=50, completion=5)
            ),
        ),
        ("assistant", MessageSent(text="One moment.")),
        ("assistant", ActionTaken(name="get")),
        ("assistant", ActionTaken(name="get", arguments={"x": 1})),
        (
            "environment",
            ActionResolved(action=8, outcome="failed", observation="no", error="no"),
        ),
        ("environment", ActionResolved(action=9, outcome="failed", error="it failed")),
        ("user", MessageSent(text="###STOP###")),
        ("user", SessionClosed(reason="finished", by="user", detail="user_stop")),
    ]
    times = [one.draft.time - NOON for one in found if one.stream == TRACE]
    assert times == [0, 1, 5, 5, 6, 7, 7, 7, 7, 7, 7, 30, 60]
    scored = score_of(found)
    assert (scored.value, scored.parts) == (0.5, {"DB": 1.0, "ACTION": 0.5})


def test_a_simulation_says_who_played(tmp_path: Path) -> None:
    found, _ = imported(RESULTS, tmp_path)
    opened = opening_of(found)
    assert (opened.task, opened.instance, opened.clock) == ("telecom", "t-1", "utc")
    assert (opened.seed, opened.request) == (42, None)
    assert opened.private == {
        "assistant": {"policy": "Be quick."},
        "user": {"scenario": RESULTS["tasks"][0]["user_scenario"]},
        "tau": {"criteria": RESULTS["tasks"][0]["evaluation_criteria"]},
    }
    assert opened.participants == (
        Participant(name="assistant", role="agent", policy="llm_agent", model="m-agent"),
        Participant(name="user", role="human", policy="user_simulator", model="m-user"),
    )


@pytest.mark.parametrize(
    ("why", "ending", "missing"),
    [
        ("user_stop", ("finished", "user"), None),
        ("agent_stop", ("ended", "assistant"), None),
        ("max_steps", ("limit", "environment"), None),
        ("too_many_errors", ("limit", "environment"), None),
        ("agent_error", ("failed", "assistant"), None),
        (
            "infrastructure_error",
            ("failed", "environment"),
            "the run broke off: infrastructure_error",
        ),
        ("something_new", ("failed", "environment"), None),
    ],
)
def test_why_a_simulation_ended(
    why: str, ending: tuple[str, str], missing: str | None, tmp_path: Path
) -> None:
    found, _ = imported(simulation_with(termination_reason=why), tmp_path)
    assert close_of(found) == (*ending, why)
    assert score_of(found).missing == missing


@pytest.mark.parametrize("mark", ["###TRANSFER###", "###OUT-OF-SCOPE###"])
def test_a_user_who_stops_for_another_reason_is_not_said_to_be_satisfied(
    mark: str, tmp_path: Path
) -> None:
    messages = [*RESULTS["simulations"][0]["messages"][:-1], {"role": "user", "content": mark}]
    found, _ = imported(simulation_with(messages=messages), tmp_path)
    assert close_of(found) == ("ended", "user", "user_stop")


def test_a_simulation_without_a_reward(tmp_path: Path) -> None:
    found, _ = imported(simulation_with(reward_info=None), tmp_path)
    assert (score_of(found).value, score_of(found).missing) == (None, "there is no reward")


def test_an_agent_on_its_own_has_the_ticket_for_a_request(tmp_path: Path) -> None:
    agent = [m for m in RESULTS["simulations"][0]["messages"] if m["role"] == "assistant"][1:]
    found, _ = imported(simulation_with(messages=agent), tmp_path)
    assert opening_of(found).request == "No signal."
    assert [one.role for one in opening_of(found).participants] == ["agent"]


def test_results_in_several_files(tmp_path: Path) -> None:
    whole, _ = imported(RESULTS, tmp_path)
    [simulation] = RESULTS["simulations"]
    about = {key: value for key, value in RESULTS.items() if key != "simulations"}
    results = write(tmp_path / "run" / "results.json", about | {"simulation_index": []})
    alone = write(tmp_path / "run" / "simulations" / "f00d.json", simulation)
    importer = TauImporter()
    assert importer.recognises(results.parent, None)
    assert not importer.recognises(tmp_path, None)
    for source in (results.parent, results):
        assert read(importer, source)[0] == whole
    assert importer.recognises(alone, shape_of(alone))
    found, _ = read(importer, alone)
    assert {one.session for one in found} == {"tau-f00d"}
    assert opening_of(found).task == "tau2"


def test_speech_is_no_text(tmp_path: Path) -> None:
    _, [diagnostic] = imported(simulation_with(messages=None, ticks=[{"tick_id": 0}]), tmp_path)
    assert (diagnostic.kind, diagnostic.what) == (
        "problem",
        "a simulation without messages: it was of speech",
    )
    said = {"role": "user", "content": "UklGRg==", "is_audio": True, "audio_script_gold": "Hello"}
    found, _ = imported(simulation_with(messages=[said]), tmp_path)
    assert next(events_of(found)) == ("user", MessageSent(text="Hello"))


def test_a_broken_simulation_is_reported(tmp_path: Path) -> None:
    results = simulation_with()
    results["simulations"].append({"id": "x"})
    _, [diagnostic] = imported(results, tmp_path)
    assert diagnostic.where == f"{tmp_path / 'file.json'}, simulation 2"
    assert diagnostic.what.startswith("invalid simulation of τ²-bench: ")


# --- both -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [{"a": 1}, [{"role": "user", "content": "x"}], {"messages": []}, [], [[RUN]], "x"]
)
def test_what_is_neither_is_refused(value: object, tmp_path: Path) -> None:
    path = write(tmp_path / "file.json", value)
    assert not TauImporter().recognises(path, shape_of(path))
    with pytest.raises(InvalidInput, match="is a result of neither τ-bench"):
        list(TauImporter().read(path, Reading()))
    with pytest.raises(InvalidInput, match=r"is not a result of τ²-bench: it lacks results\.json"):
        list(TauImporter().read(tmp_path, Reading()))


def test_real_trajectories(test_data: Callable[[str], Path]) -> None:
    source = test_data("chat/tau-bench-airline-sample.json")
    runs = json.loads(source.read_text(encoding="utf-8"))
    assert TauImporter().recognises(source, shape_of(source))
    found, diagnostics = read(TauImporter(), source)
    assert diagnostics == []
    names = list(dict.fromkeys(one.session for one in found))
    for run, name in zip(runs, names, strict=True):
        mine = [one for one in found if one.session == name]
        events = list(events_of(mine))
        said = [(actor, e.text) for actor, e in events if isinstance(e, MessageSent)]
        calls = [m for m in run["traj"] for m in m.get("tool_calls") or []]
        assert said == [
            (m["role"], m["content"])
            for m in run["traj"]
            if m["role"] in ("user", "assistant") and m["content"]
        ]
        taken = [e for _, e in events if isinstance(e, ActionTaken)]
        assert [(e.name, e.arguments) for e in taken] == [
            (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls
        ]
        resolved = [e for _, e in events if isinstance(e, ActionResolved)]
        results = [m["content"] for m in run["traj"] if m["role"] == "tool"]
        assert [e.observation for e in resolved] == results
        assert [e.outcome == "failed" for e in resolved] == [
            r.startswith("Error:") for r in results
        ]
        assert score_of(mine).value == run["reward"]


async def test_the_contract_of_importers_is_kept(
    runs: Path, results: Path, test_data: Callable[[str], Path]
) -> None:
    for source in (runs, results, test_data("chat/tau-bench-airline-sample.json")):
        await check_importer(TauImporter(), source)
