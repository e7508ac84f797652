"""The files that Collaborative Gym's published evaluation wrote next to the sessions, and its analysis."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from duolog.cli import main
from duolog.engine.events import ProgressRated, SessionOpened, UtilityScored
from duolog.interop.importers.cogym import evaluation as said
from duolog.interop.importers.cogym.runs import CogymImporter
from duolog.interop.importers.protocol import Foreign
from duolog.testing import check_importer
from foreign_logs import START, log_line, read, trace_of, write_lines

Json = dict[str, Any]
Capture = pytest.CaptureFixture[str]

TURN = log_line("user", "SEND_TEAMMATE_MESSAGE(message=on)", type="collaborative")
EDIT = log_line("an_agent", "EDITOR_UPDATE(text=x)")
LOOK = log_line("an_agent", "LOOK()")
OWN = log_line("user", "LOOK()")


def performed(*ratings: float | None) -> list[Json]:
    """A list of ``agent_progress_eval.json``; None for a round in which nothing was updated."""
    return [
        {"user_step": step, "has_result_updates": value is not None, "performance_rating": value}
        for step, value in enumerate(ratings)
    ]


def judged(*ratings: str | None) -> list[Json]:
    """A list of ``likert_score.json``."""
    return [
        {"user_step": step, "rating": value, "explanation": value and f"{value} - see above"}
        for step, value in enumerate(ratings)
    ]


def write_results(
    directory: Path,
    sessions: Mapping[str, tuple[list[Json], Json | None]],
    *,
    performance: object = None,
    progress: object = None,
) -> Path:
    """Writes a directory of results: logs with final performances, and the evaluation."""
    for number, (name, (lines, final)) in enumerate(sessions.items()):
        start = log_line("environment", START, time=f"2026-03-01 12:{number:02}:00")
        write_lines(directory / name / "event_log.jsonl", [start, *lines])
        if final is not None:
            write_json(directory / name / "task_performance.json", final)
    if performance is not None:
        write_json(directory / "agent_progress_eval.json", performance)
    if progress is not None:
        write_json(directory / "likert_score.json", progress)
    return directory


def write_json(path: Path, value: object) -> None:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def scores(found: list[Foreign]) -> list[tuple[int | None, float | None]]:
    events = [one.draft.event for one in found if one.stream == "cogym@2"]
    return [(event.round, event.value) for event in events if isinstance(event, UtilityScored)]


def ratings(found: list[Foreign]) -> list[ProgressRated]:
    events = [one.draft.event for one in found if one.stream == "cogym-likert@1"]
    return [event for event in events if isinstance(event, ProgressRated)]


def told(source: Path, kind: str) -> list[str]:
    _, diagnostics = read(CogymImporter(), source)
    return [one.what for one in diagnostics if one.kind == kind]


# --- measurements ---------------------------------------------------------------------------------


def test_each_round_that_was_evaluated_has_its_score(tmp_path: Path) -> None:
    source = write_results(
        tmp_path,
        {"env_t_1": ([LOOK, TURN, EDIT, TURN, LOOK], {"performance_rating": 0.25})},
        performance={"env_t_1": performed(None, 0.75, None)},
        progress={"env_t_1": judged("4", None)},
    )
    found, _ = read(CogymImporter(), source)
    assert scores(found) == [(2, 0.75)]
    opened = trace_of(found)[0].event
    assert isinstance(opened, SessionOpened)
    assert opened.config["utility"] == "cogym"
    [one] = [f.draft for f in found if f.stream == "cogym@2"]
    scored = one.event
    assert isinstance(scored, UtilityScored)
    assert (scored.rounds, scored.until, scored.snapshot) == ("human-turn", 5, None)
    first, second = ratings(found)
    assert (first.round, first.rating, first.explanation) == (1, 4, "4 - see above")
    assert (first.rounds, first.until) == ("human-turn", 2)
    assert (second.round, second.rating, second.missing) == (2, None, "no rating")


def test_the_parts_of_a_score_are_kept(tmp_path: Path) -> None:
    rows = performed(0.5, 0.5)
    rows[0]["evaluation"] = {
        "commonsense_evaluation": {"a": [True, None]},
        "commonsense_pass_rate": 1.0,
        "preference_evaluation": {},
        "preference_pass_rate": 0,
    }
    run = ([EDIT, TURN, EDIT], None)
    source = write_results(tmp_path, {"env_t_1": run}, performance={"env_t_1": rows})
    found, _ = read(CogymImporter(), source)
    parts = [event.parts for f in found if isinstance(event := f.draft.event, UtilityScored)]
    assert parts == [{"commonsense_pass_rate": 1.0, "preference_pass_rate": None}, {}]


@pytest.mark.parametrize("value", [None, 7, True, "0.5"])
def test_an_update_without_a_performance_is_missing_and_not_zero(
    value: object, tmp_path: Path
) -> None:
    row = {"user_step": 0, "has_result_updates": True, "performance_rating": value}
    source = write_results(
        tmp_path, {"env_t_1": ([EDIT, TURN], None)}, performance={"env_t_1": [row]}
    )
    found, _ = read(CogymImporter(), source)
    assert scores(found) == [(1, None)]


@pytest.mark.parametrize(
    ("text", "rating"),
    [("1", 1), ("5", 5), (3, 3), ("4.0", 4), ("", None), ("45", None), ("0", None), (None, None)],
)
def test_a_rating_is_a_number_as_text(text: object, rating: int | None, tmp_path: Path) -> None:
    rows = [{"user_step": 0, "rating": text}]
    source = write_results(tmp_path, {"env_t_1": ([LOOK, TURN], None)}, progress={"env_t_1": rows})
    found, _ = read(CogymImporter(), source)
    [rated] = ratings(found)
    assert rated.rating == rating
    assert (rated.missing is None) is (rating is not None)


def test_an_evaluation_that_came_later_is_added(tmp_path: Path, capsys: Capture) -> None:
    sessions = {"env_t_1": ([EDIT, TURN, LOOK], {"performance_rating": 0.25})}
    log = tmp_path / "log.db"
    source = write_results(tmp_path / "results", sessions)
    run(capsys, "import", source, "--log", log)
    write_json(source / "agent_progress_eval.json", {"env_t_1": performed(0.5, None)})
    _, err = run(capsys, "import", source, "--log", log)
    assert "imported 1 record, 7 records there already" in err
    _, err = run(capsys, "import", source, "--log", log)
    assert "imported 0 records" in err


def test_a_session_is_evaluated_from_wherever_it_is_read(tmp_path: Path) -> None:
    source = write_results(
        tmp_path / "results",
        {"env_t_1": ([EDIT, TURN], None), "env_t_2": ([EDIT, TURN], None)},
        performance={"env_t_1": performed(0.5, None), "env_t_2": performed(1.0, None)},
    )
    for place in (source / "env_t_2", source / "env_t_2" / "event_log.jsonl"):
        found, diagnostics = read(CogymImporter(), place)
        assert scores(found) == [(1, 1.0)]
        assert [one.what for one in diagnostics if "evaluat" in one.what] == []


async def test_the_contract_of_importers_is_kept(tmp_path: Path) -> None:
    source = write_results(
        tmp_path,
        {"env_t_1": ([EDIT, TURN, EDIT], {"performance_rating": 0.5}), "env_t_2": ([LOOK], None)},
        performance={"env_t_1": performed(0.5, 0.75), "env_t_2": []},
        progress={"env_t_1": judged("2"), "env_t_2": []},
    )
    await check_importer(CogymImporter(), source)


# --- what does not fit ----------------------------------------------------------------------------


def test_a_round_that_the_log_does_not_have_is_a_problem(tmp_path: Path) -> None:
    source = write_results(
        tmp_path,
        {"env_t_1": ([EDIT, TURN], None)},
        performance={"env_t_1": performed(0.5, 0.5, 0.5)},
        progress={"env_t_1": [{"user_step": -1, "rating": "3"}]},
    )
    assert told(source, "problem") == [
        "the log has no round for user_step 2",
        "the log has no round for user_step -1",
    ]


def test_a_round_that_is_listed_twice_is_a_problem(tmp_path: Path) -> None:
    source = write_results(
        tmp_path,
        {"env_t_1": ([EDIT, TURN], None)},
        performance={"env_t_1": [*performed(0.5), *performed(0.75)]},
        progress={"env_t_1": [*judged("2"), *judged("3")]},
    )
    assert told(source, "problem") == ["user_step 0 is listed twice"] * 2
    found, _ = read(CogymImporter(), source)
    assert scores(found) == [(1, 0.5)]


@pytest.mark.parametrize(
    "broken", ["[]", "{", '{"env_t_1": 3}', '{"env_t_1": [{"user_step": "x"}]}']
)
def test_a_broken_evaluation_is_a_problem_and_the_session_is_kept(
    broken: str, tmp_path: Path
) -> None:
    run = ([EDIT, TURN], {"performance_rating": 0.5})
    source = write_results(tmp_path, {"env_t_1": run}, performance=broken)
    [problem] = told(source, "problem")
    assert problem.startswith("invalid evaluation")
    found, _ = read(CogymImporter(), source)
    assert {one.stream for one in found} == {"trace", "cogym@1"}


def test_what_the_analysis_would_leave_out_is_said(tmp_path: Path) -> None:
    source = write_results(
        tmp_path,
        {"env_t_1": ([EDIT, TURN], None), "env_t_2": ([EDIT, TURN], None)},
        performance={"env_t_2": performed(0.5), "env_t_3": performed(0.5)},
    )
    differences = told(source, "difference")
    assert said.UNNAMED in differences
    assert said.FEWER in differences
    assert "evaluated, but without an event log here; left out" in differences


# --- the analysis, from the command line ----------------------------------------------------------


def run(capsys: Capture, *arguments: str | Path) -> tuple[str, str]:
    """Runs a command that succeeds; gives what it printed."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 0
    out, err = capsys.readouterr()
    return out, err


def explained(capsys: Capture, log: Path, session: str) -> Json:
    out, _ = run(capsys, "report", log, "--convention", "paper", "--explain", session, "--json")
    found: Json = json.loads(out)
    return found


def report(capsys: Capture, log: Path) -> list[Json]:
    out, _ = run(capsys, "report", log, "--convention", "paper", "--json", "--bootstrap", "0")
    groups: list[Json] = json.loads(out)["groups"]
    return groups


def test_the_analysis_by_hand(tmp_path: Path, capsys: Capture) -> None:
    """Worked by hand: three sessions with turns of 4, 3 and 2 rounds, and one without any.

    The lengths sorted are 2, 3, 4, so that the slice [0:2] holds 2 and 3, and the cut is 3. At τ = 1
    the first is left with round 1 (0.5), since round 2 was rated 2; the second, whose first round was
    rated 1, has no row; the third (1.0) and the one without turns (0.5) stay. Never: the cut ends
    0.25, 0.75, 1.0 and 0.5.
    """
    sessions: dict[str, tuple[list[Json], Json | None]] = {
        "env_t_1": ([EDIT, TURN, EDIT, TURN, EDIT, TURN, EDIT], {"performance_rating": 0}),
        "env_t_2": ([LOOK, TURN, EDIT, TURN, LOOK], {"performance_rating": 0.125}),
        "env_t_3": ([EDIT, TURN, LOOK], {"performance_rating": 0.125}),
        "env_t_4": ([EDIT, OWN], {"performance_rating": 0.5}),
    }
    performance = {
        "env_t_1": performed(0.5, 0.125, 0.25, 0.875),
        "env_t_2": performed(None, 0.75, None),
        "env_t_3": performed(1.0, None),
        "env_t_4": [],
    }
    progress = {
        "env_t_1": judged("4", "2", "3"),
        "env_t_2": judged("1", None),
        "env_t_3": judged("5"),
        "env_t_4": [],
    }
    source = write_results(tmp_path / "runs", sessions, performance=performance, progress=progress)
    log = tmp_path / "log.db"
    run(capsys, "import", source, "--log", log)
    [group] = report(capsys, log)
    assert group["sessions"] == 4
    assert group["max_step"] == 3
    assert group["counts"]["silent_sessions"] == 1
    assert group["utility"] == {
        "first": (0.5 + 0.75 + 1.0 + 0.5) / 4,
        "final": (0.875 + 0.75 + 1.0 + 0.5) / 4,
        "overall": (0.875 + 0.75 + 1.0 + 0.5) / 4,
    }
    drop = (0.5 + 1.0 + 0.5) / 3 - (0.25 + 0.75 + 1.0 + 0.5) / 4
    assert group["drop"]["1"]["abs"] == pytest.approx(drop, abs=1e-12)
    assert group["drop"]["1"]["sessions"] == 3
    assert group["drop"]["2"]["abs"] == 0


@pytest.mark.parametrize("rating", [0, 0.625])
def test_without_turns_there_is_one_pseudo_round(
    rating: float, tmp_path: Path, capsys: Capture
) -> None:
    """The utility is the final performance, even 0, regardless of the editor."""
    spoken = ([EDIT, TURN, LOOK], None)
    source = write_results(
        tmp_path / "runs",
        {
            "env_t_1": ([EDIT if rating else LOOK, OWN], {"performance_rating": rating}),
            "env_t_2": spoken,
            "env_t_3": spoken,
        },
        performance={
            "env_t_1": [],
            "env_t_2": performed(1.0, None),
            "env_t_3": performed(1.0, None),
        },
    )
    log = tmp_path / "log.db"
    run(capsys, "import", source, "--log", log)
    found = explained(capsys, log, "env_t_1")
    assert found["silent"]
    assert found["rounds"] == []
    assert (found["first"], found["final"], found["overall"]) == (rating, rating, rating)


def test_the_evaluation_counts_before_the_final_performance(
    tmp_path: Path, capsys: Capture
) -> None:
    """An analysis that finds no update in any round finds nothing of worth."""
    lines = [LOOK, TURN, LOOK]
    source = write_results(
        tmp_path / "runs",
        {name: (lines, {"performance_rating": 0.5}) for name in ("env_t_1", "env_t_2")},
        performance={name: performed(None, None) for name in ("env_t_1", "env_t_2")},
    )
    log = tmp_path / "log.db"
    run(capsys, "import", source, "--log", log)
    found = explained(capsys, log, "env_t_1")
    assert (found["first"], found["final"], found["overall"]) == (0, 0, 0)


def test_the_analysis_equals_the_published_one(
    test_data: Callable[[str], Path], tmp_path: Path, capsys: Capture
) -> None:
    compared = 0
    for expected in sorted(test_data("cogym/runs").glob("*/paper.expected.json")):
        log = tmp_path / f"{expected.parent.name}.db"
        run(capsys, "import", expected.parent, "--log", log)
        published = json.loads(expected.read_text(encoding="utf-8"))["per_session"]
        for one in published:
            found = explained(capsys, log, one["session_name"])
            ours = {
                name: found[key]
                for name, key in (("first",) * 2, ("final",) * 2, ("max", "overall"))
            }
            assert ours == pytest.approx({name: one[name] for name in ours}, abs=1e-9)
            compared += 1
        [group] = report(capsys, log)
        for name, key in (("first", "first"), ("final", "final"), ("overall", "max")):
            mean = sum(one[key] for one in published) / len(published)
            assert group["utility"][name] == pytest.approx(mean, abs=1e-9)
    assert compared == 8
