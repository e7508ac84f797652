"""Logs of Collaborative Gym: what becomes of each record, and how rounds compare."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from duolog.engine import codec
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageSent,
    ModelCalled,
    Nudged,
    Participant,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Tokens,
    UtilityScored,
)
from duolog.engine.records import TRACE, Record
from duolog.engine.rounds import RoundProjector
from duolog.interop.importers.cogym import files as said
from duolog.interop.importers.cogym.outcome import persona_of
from duolog.interop.importers.cogym.runs import CogymImporter
from duolog.interop.importers.cogym.sessions import unquoted
from duolog.interop.importers.json_sniff import shape_of
from duolog.interop.importers.protocol import Foreign, Reading
from duolog.testing import check_importer
from foreign_logs import (
    START,
    collaboration,
    events_of,
    log_line,
    read,
    trace_of,
    write_lines,
    write_run,
)
from hypothesis import given
from hypothesis import strategies as st

PERFORMANCE = {
    "performance_rating": 0.75,
    "commonsense_evaluation": {"a": [True, None]},
    "commonsense_pass_rate": 1.0,
    "preference_evaluation": {},
    "preference_pass_rate": 0,
}
TALK = {"type": "collaborative"}
NOON = 1_772_366_400.0  # 2026-03-01 12:00 UTC

Json = dict[str, Any]


@pytest.fixture
def result(tmp_path: Path) -> Path:
    return write_run(tmp_path / "arm" / "env_travel_planning_7", collaboration(), PERFORMANCE)


def submitted(content: str, base: int | None = None) -> SnapshotTaken:
    return SnapshotTaken(content=content, digest=codec.digest(content), base=base)


def opening_of(found: list[Foreign]) -> SessionOpened:
    opened = trace_of(found)[0].event
    assert isinstance(opened, SessionOpened)
    return opened


def scores(found: list[Foreign]) -> list[tuple[str, Event]]:
    return [
        (one.stream, one.draft.event)
        for one in found
        if one.stream != TRACE and isinstance(one.draft.event, Event)
    ]


# --- one record after the other ----------------------------------------------------------------------


def test_every_act_becomes_an_event(result: Path) -> None:
    found, _ = read(CogymImporter(), result)
    agent, user, environment = "an_agent", "user", "environment"
    usage = [Tokens(prompt=p, completion=c) for p, c in ((900, 40), (100, 4), (200, 8))]
    idle = "Idle for a long time. The agent should take an action."
    assert list(events_of(found)) == [
        (agent, ActionTaken(name="ACCOMMODATION_SEARCH", arguments={"city": "Bonn"})),
        (environment, ActionResolved(action=2, outcome="ok", observation="two rooms")),
        (agent, MessageSent(text="For\nhow many?")),
        (environment, Nudged(to=agent, reason=idle)),
        (environment, Nudged(to=user, reason=idle)),
        (user, MessageSent(text="Two, thanks")),
        (agent, ActionTaken(name="EDITOR_UPDATE", raw="EDITOR_UPDATE(Day 1)")),
        (environment, ActionResolved(action=8, outcome="failed", error="'Day 1' invalid.")),
        (agent, submitted("Day 1:\nBonn")),
        (agent, ActionTaken(name="ACCOMMODATION_SEARCH", arguments={"city": "Bonn"})),
        (environment, ActionResolved(action=11, outcome="ok", observation="two rooms")),
        (agent, ApprovalAsked(question='EDITOR_UPDATE(text="Day 2")')),
        (user, ApprovalGiven(asked=13, approved=True)),
        (agent, submitted("Day 2", base=10)),
        (
            user,
            ActionTaken(
                name="REJECT_CONFIRMATION", arguments={"request_id": "e"}, collaborative=True
            ),
        ),
        (environment, ActionResolved(action=16, outcome="ok")),
        (user, submitted("Day 2, by train", base=15)),
        (agent, ModelCalled(model="m-1", purpose="act (all calls)", request="", tokens=usage[0])),
        (user, ModelCalled(model="m-2", purpose="plan (all calls)", request="", tokens=usage[1])),
        (user, ModelCalled(model="m-3", purpose="act (all calls)", request="", tokens=usage[2])),
        (user, SessionClosed(reason="finished", by="user")),
    ]


def test_the_opening_says_who_played_and_what_was_asked(result: Path) -> None:
    found, _ = read(CogymImporter(), result)
    opened = opening_of(found)
    assert (opened.task, opened.instance, opened.clock) == ("travel_planning", "7", "utc")
    assert opened.request == "Plan a trip."
    assert opened.config == {
        "imported": {"format": "cogym", "zone": "UTC"},
        "group": {"agent": "an_agent (arm)"},
        "task_description": "Plan it, query=twice. Here: x",
        "utility": "cogym",
    }
    assert opened.participants == (
        Participant(name="an_agent", role="agent", policy="an_agent", model="m-1"),
        Participant(
            name="user",
            role="human",
            policy="simulated_user",
            model="m-2 and m-3",
            persona="feedback-only",
        ),
    )


def test_the_final_performance_is_the_utility_of_the_last_snapshot(result: Path) -> None:
    found, _ = read(CogymImporter(), result)
    [(stream, scored)] = scores(found)
    assert stream == "cogym@1"
    assert isinstance(scored, UtilityScored)
    assert (scored.snapshot, scored.value, scored.missing) == (18, 0.75, None)
    # An evaluation that broke off says nothing, though the benchmark counts it as nothing right.
    assert scored.parts == {"commonsense_pass_rate": 1.0, "preference_pass_rate": None}


@pytest.mark.parametrize(
    ("performance", "value", "missing"),
    [
        ({"performance_rating": 0, "task_completion": 0}, 0.0, None),
        ({"query": "real"}, None, "there is no performance_rating"),
        ({"performance_rating": 7}, None, "performance_rating is 7, and not in [0, 1]"),
        ({"performance_rating": True}, None, "performance_rating is True, and not in [0, 1]"),
    ],
)
def test_a_performance_that_is_none_is_missing_and_not_zero(
    performance: Json, value: float | None, missing: str | None, tmp_path: Path
) -> None:
    lines = [log_line("environment", START), log_line("an_agent", "FINISH()")]
    found, _ = read(CogymImporter(), write_run(tmp_path / "run", lines, performance))
    [(_, scored)] = scores(found)
    assert isinstance(scored, UtilityScored)
    assert (scored.value, scored.missing) == (value, missing)
    assert (scored.snapshot, scored.round, scored.rounds) == (None, 1, "handoff")


def test_times_are_local_to_the_zone_that_is_named(result: Path) -> None:
    for zone, offset in (
        (ZoneInfo("Europe/Berlin"), -3600),
        (timezone(timedelta(hours=-5)), 18000),
    ):
        found, _ = read(CogymImporter(), result, Reading(zone=zone))
        assert trace_of(found)[0].time == NOON + offset
    assert opening_of(found).config["imported"] == {"format": "cogym", "zone": "UTC-05:00"}


def test_times_that_nobody_can_read_are_no_times(tmp_path: Path) -> None:
    lines = [log_line("environment", START, time="t0"), log_line("an_agent", "LOOK()", time="t1")]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "a.jsonl", lines))
    assert opening_of(found).clock == "virtual"
    assert "zone" not in str(opening_of(found).config)
    assert {one.draft.time for one in found} == {0.0}
    lines = [log_line("environment", START), log_line("an_agent", "LOOK()", time="t1")]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "b.jsonl", lines))
    assert {one.draft.time for one in found} == {NOON}


# --- edits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "content"),
    [
        ('EDITOR_UPDATE(text="plan 8\nline 2 )")', "plan 8\nline 2 )"),
        ("EDITOR_UPDATE(text=plan (8), line=2)", "plan (8), line=2"),
        ('EDITOR_UPDATE(text="")', ""),
        (' EDITOR_UPDATE(text="indented")', "indented"),
        ('EDITOR_UPDATE(content="x")', "x"),
        ("Now I do it.\nEDITOR_UPDATE(text=hidden in prose)", "hidden in prose"),
    ],
)
def test_an_edit_that_succeeded_without_a_state_beside_it(
    action: str, content: str, tmp_path: Path
) -> None:
    lines = [log_line("environment", START), log_line("user", action)]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "log.jsonl", lines))
    assert list(events_of(found)) == [("user", submitted(content))]


def test_the_editor_is_believed_before_the_act(tmp_path: Path) -> None:
    state = {"public": {"plan_editor": "as shown", "other": 1}, "private": {}}
    edit = log_line("an_agent", "EDITOR_UPDATE(text=as typed)", current_observation=state)
    lines = [log_line("environment", START), edit]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "log.jsonl", lines))
    assert list(events_of(found)) == [("an_agent", submitted("as shown"))]


def test_an_edit_whose_text_nobody_can_tell_is_an_action(tmp_path: Path) -> None:
    lines = [log_line("environment", START), log_line("user", "EDITOR_UPDATE(what)")]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "log.jsonl", lines))
    assert [type(event) for _, event in events_of(found)] == [ActionTaken, ActionResolved]


# --- how it ends ----------------------------------------------------------------------------------


def endings(lines: list[Json], performance: Json | None, directory: Path) -> list[SessionClosed]:
    found, _ = read(CogymImporter(), write_run(directory, lines, performance))
    return [event for _, event in events_of(found) if isinstance(event, SessionClosed)]


def test_a_session_ends_where_the_log_says_so(tmp_path: Path) -> None:
    start, look = log_line("environment", START), log_line("an_agent", "LOOK()")
    finish, failed = log_line("an_agent", "FINISH()"), log_line("user", "FINISH()", status="failed")
    done = {"performance_rating": 0.5}
    numbers = iter(range(9))

    def closed(lines: list[Json], performance: Json | None) -> list[tuple[str, str]]:
        ends = endings([start, *lines], performance, tmp_path / str(next(numbers)))
        return [(end.reason, end.by) for end in ends]

    satisfied = log_line("user", "FINISH()")
    assert closed([look, satisfied], None) == [("finished", "user")]
    assert closed([look, finish], None) == [("ended", "an_agent")]
    assert closed([finish, look], None) == []
    assert closed([look, failed], None) == []
    assert closed([look], done) == [("stalled", "environment")]
    assert closed([look] * 30, done) == [("limit", "environment")]
    assert closed([], None) == []


def test_notices_before_the_end_are_told(tmp_path: Path) -> None:
    chat = [
        {"role": "environment", "timestamp": "2026-03-01 12:00:05", "message": "Welcome."},
        {"role": "environment", "timestamp": "x", "message": "Idle for a long time. Go on."},
    ]
    finish = log_line("an_agent", "FINISH()", current_chat_history=chat)
    lines = [log_line("environment", START), finish]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "log.jsonl", lines))
    assert list(events_of(found)) == [
        ("environment", MessageSent(text="Welcome.")),
        ("environment", Nudged(to="an_agent", reason="Idle for a long time. Go on.")),
        ("an_agent", SessionClosed(reason="ended", by="an_agent")),
    ]
    assert [one.draft.time - NOON for one in found] == [0, 5, 5, 0]


@pytest.mark.parametrize("action", ["SEND_TEAMMATE_MESSAGE(text=a)", "REQUEST_TEAMMATE_CONFIRM()"])
def test_collaborative_acts_of_another_form_keep_what_they_say(action: str, tmp_path: Path) -> None:
    lines = [log_line("environment", START), log_line("user", action, **TALK)]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "log.jsonl", lines))
    (_, taken), _ = events_of(found)
    assert isinstance(taken, ActionTaken)
    assert (taken.collaborative, taken.raw) == (True, None)
    assert "=" not in action or taken.arguments == {"text": "a"}


def test_a_question_waits_for_its_answer(tmp_path: Path) -> None:
    ask = log_line("an_agent", "REQUEST_TEAMMATE_CONFIRM(request_id=, pending_action=GO())", **TALK)
    sleep = log_line("user", "PUT_AGENT_ASLEEP()", **TALK)
    accept = log_line("user", "ACCEPT_CONFIRMATION(request_id=)", **TALK)
    lines = [log_line("environment", START), ask, sleep, accept, accept]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "log.jsonl", lines))
    assert [event for _, event in events_of(found)] == [
        ApprovalAsked(question="GO()"),
        ActionTaken(name="PUT_AGENT_ASLEEP", collaborative=True),
        ActionResolved(action=3, outcome="ok"),
        ApprovalGiven(asked=2, approved=True),
        ActionTaken(name="ACCEPT_CONFIRMATION", arguments={"request_id": ""}, collaborative=True),
        ActionResolved(action=6, outcome="ok"),
    ]


def test_a_finish_that_ends_nothing_is_an_action(tmp_path: Path) -> None:
    lines = [log_line("environment", START)]
    lines += [log_line("user", "FINISH()"), log_line("an_agent", "EDITOR_UPDATE(text=a)")]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "log.jsonl", lines))
    assert [event for _, event in events_of(found)] == [
        ActionTaken(name="FINISH"),
        ActionResolved(action=2, outcome="ok"),
        submitted("a"),
    ]


# --- who takes part -------------------------------------------------------------------------------


def test_an_automated_run_is_a_baseline_only_where_the_log_lists_the_team(tmp_path: Path) -> None:
    alone: Json = {"public": {}, "private": {"an_agent": {}}}
    for number, (state, baseline) in enumerate(((alone, None), (None, False))):
        lines = [log_line("environment", START, current_observation=state)]
        lines.append(log_line("an_agent", "FINISH()"))
        found, _ = read(CogymImporter(), write_lines(tmp_path / f"{number}.jsonl", lines))
        assert opening_of(found).config.get("baseline") is baseline
        assert [one.role for one in opening_of(found).participants] == ["agent"]


@pytest.mark.parametrize(
    ("feedback", "action", "persona"),
    [
        (True, True, "proactive"),
        (True, False, "feedback-only"),
        (False, False, "lazy"),
        (False, True, "action-only"),
    ],
)
def test_personas(feedback: bool, action: bool, persona: str) -> None:
    traits = {"proactive_feedback": feedback, "proactive_action": action}
    assert persona_of(traits) == persona


def test_information_on_somebody_else_is_left_out_and_said(result: Path) -> None:
    (result / "stranger").mkdir()
    (result / "stranger" / "info.json").write_text("{}", encoding="utf-8")
    (result / "an_agent" / "info.json").write_text("[]", encoding="utf-8")
    found, diagnostics = read(CogymImporter(), result)
    told = [(one.kind, one.what.split(":")[0]) for one in diagnostics if "info.json" in one.where]
    assert told == [
        ("problem", "invalid information on a member"),
        ("difference", "of a member that is not in the log; left out"),
    ]
    assert opening_of(found).participants[0].model is None


# --- where the logs are ----------------------------------------------------------------------------


def test_a_directory_of_results(tmp_path: Path) -> None:
    for name in ("env_a_b_1", "env_a_b_2", "env_a_b_1_old"):
        write_run(tmp_path / "tag" / "results" / name, collaboration())
    found, diagnostics = read(CogymImporter(), tmp_path)
    sessions = list(dict.fromkeys(one.session for one in found))
    assert [session.rsplit("-", 1)[0] for session in sessions] == ["env_a_b_1", "env_a_b_2"]
    assert found[0].draft.event.config["group"] == {"agent": "an_agent (tag)"}  # type: ignore[union-attr]
    assert [one.where for one in diagnostics if "set aside" in one.what] == [
        str(tmp_path / "tag" / "results" / "env_a_b_1_old")
    ]
    alone, _ = read(CogymImporter(), tmp_path / "tag" / "results" / "env_a_b_1_old")
    assert {one.session.rsplit("-", 1)[0] for one in alone} == {"env_a_b_1_old"}


def test_a_directory_of_logs_on_their_own(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_lines(tmp_path / f"{name}.jsonl", collaboration())
    write_lines(tmp_path / "chat.jsonl", [{"role": "user", "content": "Hello"}])
    assert CogymImporter().recognises(tmp_path, None)
    found, _ = read(CogymImporter(), tmp_path)
    names = dict.fromkeys(one.session.rsplit("-", 1)[0] for one in found)
    assert list(names) == ["a", "b"]


def test_a_session_is_the_same_from_wherever_it_is_read(
    result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(result)
    sources = [result.parent, result, result / "event_log.jsonl", Path("event_log.jsonl"), Path()]
    first, *others = [read(CogymImporter(), source)[0] for source in sources]
    assert all(other == first for other in others)


def test_sessions_are_told_apart(tmp_path: Path) -> None:
    lines = collaboration()
    write_run(tmp_path / "a" / "env_t_1", lines)
    write_run(tmp_path / "b" / "env_t_1", lines)
    later = [{**lines[0], "timestamp": "2026-03-01 13:00:00"}, *lines[1:]]
    write_run(tmp_path / "c" / "env_t_1", later)
    timeless = [{**line, "timestamp": "t"} for line in lines]
    write_lines(tmp_path / "d" / "log.jsonl", timeless)
    write_lines(tmp_path / "e" / "log.jsonl", timeless[:-1])
    sources = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    sources += [tmp_path / "d" / "log.jsonl", tmp_path / "e" / "log.jsonl"]
    assert len({read(CogymImporter(), source)[0][0].session for source in sources}) == 5


def test_an_array_of_records_is_a_log_too(result: Path) -> None:
    lines, _ = read(CogymImporter(), result)
    (result / "event_log.jsonl").unlink()
    (result / "event_log.json").write_text(json.dumps(collaboration()), encoding="utf-8")
    array, _ = read(CogymImporter(), result)
    assert [one.draft for one in array] == [one.draft for one in lines]


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a result of Collaborative Gym: no event_log"):
        list(CogymImporter().read(tmp_path, Reading()))
    with pytest.raises(InvalidInput, match="cannot read"):
        list(CogymImporter().read(tmp_path / "none.jsonl", Reading()))


def test_it_recognises_its_own(result: Path, tmp_path: Path) -> None:
    importer = CogymImporter()
    log = result / "event_log.jsonl"
    assert importer.recognises(log, shape_of(log))
    assert importer.recognises(tmp_path, None)
    other = write_lines(tmp_path / "other" / "chat.jsonl", [{"role": "user", "content": "Hello"}])
    assert not importer.recognises(other, shape_of(other))
    assert not importer.recognises(other.parent, None)


# --- what is broken -------------------------------------------------------------------------------


def test_broken_lines_are_reported_with_their_numbers(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.jsonl", collaboration())
    lines = log.read_bytes().splitlines(keepends=True)
    lines[1] = b'{"role": "an_agent", "act'
    lines[3] = b'\n"a text"\n'
    lines[5] = b'{"role": "user"}\n'
    lines.append(b'{"role":"\xff"}')
    log.write_bytes(b"".join(lines).replace(b"act{", b"act\n{"))
    _, diagnostics = read(CogymImporter(), log)
    problems = [(one.where, one.what) for one in diagnostics if one.kind == "problem"]
    number = len(lines) + 1
    assert [where for where, _ in problems] == [f"{log}, line {n}" for n in (2, 5, 7, number)]
    assert {what.split(":")[0] for _, what in problems} == {"invalid record of Collaborative Gym"}
    assert "`action`" in problems[2][1]


def test_a_log_without_records_is_a_problem(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n\n", encoding="utf-8")
    _, [diagnostic] = read(CogymImporter(), log)
    assert (diagnostic.kind, diagnostic.what) == ("problem", "an event log without records")


def test_odd_states_do_no_harm(tmp_path: Path) -> None:
    odd: list[tuple[object, object]] = [(None, None), (3, "x"), ([1], [2]), ({}, {"public": 1})]
    odd.append(([], {"public": {"a_editor": 2}}))
    for number, (chat, state) in enumerate(odd):
        line = log_line("user", "LOOK()", current_chat_history=chat, current_observation=state)
        lines = [log_line("environment", START), line]
        found, diagnostics = read(CogymImporter(), write_lines(tmp_path / f"{number}.jsonl", lines))
        assert [type(event) for _, event in events_of(found)] == [ActionTaken, ActionResolved]
        assert [one for one in diagnostics if one.kind == "problem"] == []


def test_what_python_writes_and_json_does_not_know(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    state = '{"public": {"n": NaN}, "private": {"user": {"search_output": {"x": [Infinity]}}}}'
    line = json.dumps(log_line("user", "FIND_SEARCH(q=\ud800)"))[:-1]
    start = json.dumps(log_line("environment", START))
    log.write_text(f'{start}\n{line}, "current_observation": {state}}}\n', encoding="utf-8")
    found, _ = read(CogymImporter(), log)
    assert list(events_of(found)) == [
        ("user", ActionTaken(name="FIND_SEARCH", arguments={"q": "?"})),
        (
            "environment",
            ActionResolved(
                action=2, outcome="ok", observation={"n": None, "search_output": {"x": [None]}}
            ),
        ),
    ]


def test_a_log_that_begins_in_the_middle(tmp_path: Path) -> None:
    lines = [log_line("user", "SEND_TEAMMATE_MESSAGE(message=Hello)", **TALK)]
    lines.append(log_line("an_agent", "LOOK()"))
    found, _ = read(CogymImporter(), write_lines(tmp_path / "log.jsonl", lines))
    assert opening_of(found).request is None
    assert [actor for actor, _ in events_of(found)] == ["user", "an_agent", "environment"]


# --- rounds, as the published analysis has them -----------------------------------------------------


def turns(records: list[Record]) -> list[tuple[int, object]]:
    """The rounds by human turns: how many records each has, and the last output in it."""
    projector = RoundProjector("human-turn")
    found: list[list[Record]] = [[]]
    for record in records:
        before = projector.number
        projector.feed(record)
        if projector.number > before:
            found.append([])
        found[-1].append(record)
    last = [[r.event for r in part if isinstance(r.event, SnapshotTaken)] for part in found]
    return [
        (len(part), some[-1].content if some else None)
        for part, some in zip(found, last, strict=True)
    ]


def test_every_collaborative_act_of_a_user_opens_a_round(tmp_path: Path) -> None:
    say = log_line("user", "SEND_TEAMMATE_MESSAGE(message=a)", **TALK)
    unsent = {**say, "action_status": "failed (action_error: x)"}
    answer = log_line("user", "ACCEPT_CONFIRMATION(request_id=1)", **TALK)
    sleep = log_line("user", "PUT_AGENT_ASLEEP()", **TALK)
    mine = log_line("user", "EDITOR_UPDATE(text=b)")
    broken = {**mine, "action_status": "failed (action_error: x)"}
    theirs = {**say, "role": "an_agent"}
    lines = [log_line("environment", START), theirs, say, unsent, mine, broken, answer, sleep]
    found, _ = read(CogymImporter(), write_lines(tmp_path / "log.jsonl", lines))
    assert [content for _, content in turns(trace_of(found))] == [None, None, "b", None, None]


def test_what_the_published_analysis_counts_otherwise_is_said(tmp_path: Path) -> None:
    edit = log_line("an_agent", 'EDITOR_UPDATE(text="x")')
    plain = log_line("an_agent", "EDITOR_UPDATE(text=x)")
    failed = {**edit, "action_status": "failed (action_error: no)"}
    unread = log_line("an_agent", "EDITOR_UPDATE(x)")
    mention = log_line("an_agent", "SEND_TEAMMATE_MESSAGE(message=see EDITOR_UPDATE)", **TALK)
    turn = log_line("user", "SEND_TEAMMATE_MESSAGE(message=on)", **TALK)
    own = log_line("user", "SEND_TEAMMATE_MESSAGE(message=EDITOR_UPDATE?)", **TALK)
    rounds = [[failed], [mention], [edit], [plain], [plain, failed], [plain, mention], [unread], []]
    lines = [log_line("environment", START)]
    for part in rounds:
        lines += [*part, turn]
    _, diagnostics = read(CogymImporter(), write_lines(tmp_path / "a.jsonl", lines))
    assert [(one.where, one.what) for one in diagnostics] == [
        ("round 1", said.FAILED),
        ("round 2", said.MENTIONED),
        ("round 3", said.TYPED),
        ("round 5", said.LAST),
        ("round 6", said.LAST),
        ("round 7", said.UNREAD),
        ("round 9", said.OWN),
    ]
    _, diagnostics = read(CogymImporter(), write_lines(tmp_path / "b.jsonl", [lines[0], own]))
    assert [one.what for one in diagnostics] == [said.MENTIONED, said.OWN]
    _, diagnostics = read(CogymImporter(), write_lines(tmp_path / "c.jsonl", [lines[0], plain]))
    assert [one.what for one in diagnostics] == [said.NONE]


ROLES = st.sampled_from(["user", "an_agent"])
STATUS = st.sampled_from(["succeeded", "failed (action_error: x)"])
ACTS = st.sampled_from(
    [
        ('SEND_TEAMMATE_MESSAGE(message="I will EDITOR_UPDATE now")', "collaborative"),
        ("REQUEST_TEAMMATE_CONFIRM(request_id=1, pending_action=FINISH())", "collaborative"),
        ("ACCEPT_CONFIRMATION(request_id=1)", "collaborative"),
        ("REJECT_CONFIRMATION(request_id=1)", "collaborative"),
        ("PUT_AGENT_ASLEEP()", "collaborative"),
        ("SEND_TEAMMATE_MESSAGE(what)", "environment"),
        ("EDITOR_UPDATE(text=)", "environment"),
        ("EDITOR_UPDATE(text=a)", "environment"),
        ('EDITOR_UPDATE(text="b\n(c)")', "environment"),
        ("FINISH()", "environment"),
        ("nonsense", "environment"),
    ]
)


@given(st.lists(st.tuples(ROLES, ACTS, STATUS), max_size=25))
def test_rounds_are_what_the_published_analysis_makes_them(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, tuple[str, str], str]]
) -> None:
    """A round begins with each collaborative act of the user; the last edit in it counts."""
    lines = [log_line("environment", START)]
    expected: list[str | None] = [None]
    for role, (action, type), status in acts:
        lines.append(log_line(role, action, status=status, type=type))
        if role == "user" and type == "collaborative":
            expected.append(None)
        elif action.startswith("EDITOR_UPDATE") and status == "succeeded":
            expected[-1] = action[len("EDITOR_UPDATE(text=") : -1].strip('"')
    path = write_lines(tmp_path_factory.getbasetemp() / "any.jsonl", lines)
    found, diagnostics = read(CogymImporter(), path)
    assert [one for one in diagnostics if one.kind == "problem"] == []
    assert [content for _, content in turns(trace_of(found))] == expected


def published(root: Path) -> Iterator[tuple[Path, list[Json]]]:
    """Logs with the rounds that the published analysis derives from them."""
    for path in sorted(root.glob("rounds/*.jsonl")):
        rounds = json.loads(path.with_suffix(".expected.json").read_text(encoding="utf-8"))
        yield path, rounds
    for path in sorted(root.glob("runs/*/*/event_log.jsonl")):
        rounds = json.loads(path.with_name("rounds.expected.json").read_text(encoding="utf-8"))
        yield path, rounds


def as_shown(typed: str) -> str:
    """A text as the editor of Collaborative Gym shows what was typed."""
    return typed.strip().strip('"').strip("'").strip().replace("\\n", "\n")


def test_the_rounds_agree_with_the_published_analysis(test_data: Callable[[str], Path]) -> None:
    counted = 0
    for path, rounds in published(test_data("cogym")):
        found, diagnostics = read(CogymImporter(), path)
        differ = {(one.what, one.where) for one in diagnostics if one.kind == "difference"}
        ours = turns(trace_of(found))
        assert len(ours) == len(rounds) or (said.NONE, "round 1") in differ
        for number, (their, (_, content)) in enumerate(zip(rounds, ours, strict=False), start=1):
            where = f"round {number}"
            counts_more = {(said.FAILED, where), (said.MENTIONED, where), (said.UNREAD, where)}
            if counts_more & differ:
                assert (their["has_result_updates"], content) == (True, None)
                continue
            assert their["has_result_updates"] is (content is not None)
            typed = their["last_result_update_content"]
            if (said.LAST, where) not in differ and typed is not None:
                assert as_shown(typed["text"]) == content
                counted += 1
            elif content is not None and typed is None:
                assert {(said.TYPED, where), (said.LAST, where)} & differ
    assert counted > 15


async def test_the_contract_of_importers_is_kept(result: Path) -> None:
    await check_importer(CogymImporter(), result)
    await check_importer(CogymImporter(), result / "event_log.jsonl", Reading(zone=None))


async def test_it_is_kept_on_real_logs(test_data: Callable[[str], Path]) -> None:
    for name in ("cogym/runs", "cogym/rounds"):
        await check_importer(CogymImporter(), test_data(name))


def test_real_results_come_in_whole(test_data: Callable[[str], Path], tmp_path: Path) -> None:
    copy = tmp_path / "runs"
    shutil.copytree(test_data("cogym/runs"), copy)
    found, diagnostics = read(CogymImporter(), copy)
    assert [one for one in diagnostics if one.kind == "problem"] == []
    assert len({one.session for one in found}) == len(list(copy.glob("*/*/event_log.jsonl")))
    for log in copy.glob("*/*/event_log.jsonl"):
        performance = json.loads(log.with_name("task_performance.json").read_text(encoding="utf-8"))
        one, _ = read(CogymImporter(), log)
        [scored] = [event for stream, event in scores(one) if stream == "cogym@1"]
        assert isinstance(scored, UtilityScored)
        assert scored.value == performance["performance_rating"]
        texts = [event.text for _, event in events_of(one) if isinstance(event, MessageSent)]
        chat = json.loads(log.read_text(encoding="utf-8").splitlines()[-1])["current_chat_history"]
        said_there = [m["message"] for m in chat if m["role"] != "environment"]
        # The chat keeps the quotes of the call; the message is the text between them.
        assert [text for text in map(unquoted, said_there) if text not in texts] == said_there[:1]
        last = [event for _, event in events_of(one) if isinstance(event, SnapshotTaken)]
        if last:
            assert last[-1].content == performance["outcome"]
