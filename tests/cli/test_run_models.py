"""``duolog run`` on models, against a server on loopback: whole experiments, killed and gone on with,
within a budget, without a key; and the key is nowhere to be found afterwards."""

from __future__ import annotations

import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest
from duolog.cli import main
from duolog.engine.events import ModelCalled, SessionClosed, SessionOpened
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from forked import Forked
from openai_server import Answer, Body, OpenAIServer
from travel_model import play, play_briefly

KEY = "sk-proj-a-key-that-must-not-be-seen-7f3a9c"
MODELS = "--models openai/gpt-4o --user-model openai/gpt-4o-mini --judge-model openai/gpt-4o-mini"
AGENTS = ("auto", "one-stage", "two-stage")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, litellm_at_work: None) -> Iterator[OpenAIServer]:
    """Plays all parts of travel planning, in short sessions."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("COLUMNS", "120")
    with OpenAIServer(answer=play_briefly).running() as server:
        yield server


def arguments(server: OpenAIServer, path: Path, *more: str) -> list[str]:
    common = ["run", "travel", "--agents", ",".join(AGENTS), *MODELS.split()]
    return [*common, "--api-base", server.url, "--log", str(path), "--seed", "7", *more]


class Call(NamedTuple):
    """A call that a log holds: who asked what."""

    session: str
    actor: str
    request: str
    event: ModelCalled


def calls(path: Path) -> list[Call]:
    """All calls that a log holds."""

    async def read() -> list[Call]:
        async with open_log(str(path), create=False) as log:
            return [
                Call(record.session, record.actor, record.event.request, record.event)
                async for record in log.read_all()
                if isinstance(record.event, ModelCalled)
            ]

    return anyio.run(read)


def trace(path: Path) -> list[Record]:
    """All records of a log."""

    async def read() -> list[Record]:
        async with open_log(str(path), create=False) as log:
            return [record async for record in log.read_all()]

    return anyio.run(read)


def ends(path: Path) -> dict[str, str]:
    """How each session was closed; empty if it is open."""

    async def read() -> dict[str, str]:
        found: dict[str, str] = {}
        async with open_log(str(path), create=False) as log:
            async for record in log.read_all():
                if isinstance(record.event, SessionOpened):
                    found[record.session] = ""
                elif isinstance(record.event, SessionClosed):
                    found[record.session] = record.event.reason
        return found

    return anyio.run(read)


def nowhere(secret: str, directory: Path) -> bool:
    return all(
        secret.encode() not in file.read_bytes() for file in directory.rglob("*") if file.is_file()
    )


@pytest.mark.slow
def test_a_whole_experiment_on_models(
    server: OpenAIServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.db"
    assert main(arguments(server, path, "--sessions", "1")) == 0
    out, err = capfd.readouterr()
    assert all(agent in out for agent in AGENTS[1:])
    assert "Baseline" in out
    assert f"models: {len(server.requests)} calls" in err
    assert set(ends(path).values()) == {"finished"}
    made = calls(path)
    assert len(made) == len(server.requests)
    assert {call.event.model for call in made} == {"openai/gpt-4o", "openai/gpt-4o-mini"}
    assert all(call.event.cost for call in made)
    assert all(headers["authorization"] == f"Bearer {KEY}" for headers in server.headers)

    # Run again, it shows the same without a request.
    asked = len(server.requests)
    assert main(arguments(server, path, "--sessions", "1")) == 0
    again = capfd.readouterr()
    assert again.out == out
    assert "3 sessions: 0 run, 3 in the log already" in again.err
    assert len(server.requests) == asked

    assert nowhere(KEY, tmp_path)
    assert KEY not in out + err + again.err


@pytest.mark.slow
def test_a_user_on_a_model_may_walk_away_before_there_is_an_output(
    server: OpenAIServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    offered: list[str] = []

    def impatient(body: Body) -> Answer:
        prompt = body["messages"][-1]["content"]
        if not prompt.startswith("# Your request") or "Your choices are:" not in prompt:
            return play(body)
        offered.append(prompt)
        return Answer(text="Give up")

    server.answer = impatient
    path = tmp_path / "log.db"
    assert main(arguments(server, path, "--agents", "one-stage", "--sessions", "1")) == 0
    assert list(ends(path).values()) == ["abandoned"]
    assert "(there is none yet)" in offered[0]  # no output
    assert not re.search(r"^\d\. Finish", offered[0], re.MULTILINE)
    kinds = {record.kind for record in trace(path)}
    assert "SnapshotTaken" not in kinds
    [closed] = [r.event for r in trace(path) if isinstance(r.event, SessionClosed)]
    assert (closed.by, closed.detail) == ("user", "gives up")
    assert "0.000" in capfd.readouterr().out  # worth nothing, and counted


@pytest.mark.slow
def test_a_wrong_key_ends_the_run_and_is_not_shown(
    server: OpenAIServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.fault = lambda number, body: "401"  # whose message quotes the key
    path = tmp_path / "log.db"
    assert main(arguments(server, path, "--sessions", "1")) == 3
    out, err = capfd.readouterr()
    assert out == ""  # there is nothing to report on
    assert "3 of 3 sessions left to be run" in err
    assert "Incorrect API key provided: [removed]" in err
    assert "Traceback" not in err
    assert KEY not in err
    assert nowhere(KEY, tmp_path)

    server.fault = lambda number, body: None
    assert main(arguments(server, path, "--sessions", "1")) == 0
    assert list(ends(path).values()) == ["finished"] * 3


@pytest.mark.slow
def test_a_budget_stops_the_run_and_a_larger_one_goes_on(
    server: OpenAIServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.db"
    few = ("--sessions", "1", "--concurrency", "2")
    assert main(arguments(server, path, *few, "--budget-tokens", "30000")) == 3
    err = capfd.readouterr().err
    assert "the budget of the experiment is used up" in err
    assert "of 30000" in err
    first = len(calls(path))
    assert first == len(server.requests)
    assert main(arguments(server, path, *few, "--budget-tokens", "10000000")) == 0
    assert set(ends(path).values()) == {"finished"}
    assert len(calls(path)) == len(server.requests) > first


@pytest.mark.slow
def test_the_cache_answers_what_was_asked_before(
    server: OpenAIServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cache = ("--sessions", "1", "--cache", str(tmp_path / "cache"))
    assert main(arguments(server, tmp_path / "one.db", *cache)) == 0
    first = capfd.readouterr()
    asked = len(server.requests)
    assert main(arguments(server, tmp_path / "two.db", *cache)) == 0
    second = capfd.readouterr()
    assert len(server.requests) == asked
    assert f"{len(calls(tmp_path / 'two.db'))} answered from the cache" in second.err
    assert "$0.00" in second.err
    assert second.out == first.out
    assert nowhere(KEY, tmp_path)


@pytest.mark.slow
def test_a_dry_run_asks_nobody_and_writes_nothing(
    server: OpenAIServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.db"
    assert main(arguments(server, path, "--sessions", "2", "--dry-run")) == 0
    out, err = capfd.readouterr()
    assert "about, for 6 sessions" in out
    assert [line.split()[0] for line in out.splitlines()[2:] if line.strip()] == [
        "agent",
        "judge",
        "user",
        "all",
    ]
    assert "Estimated from 6 sessions" in err
    assert server.requests == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("litellm_at_work")  # keeps what loads LiteLLM in one process
def test_a_dry_run_of_a_model_without_a_provider_prints_its_estimate_and_no_more(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "log.db")
    given = ["run", "travel", "--agents", "auto", "--models", "strange", "--sessions", "1"]
    assert main([*given, "--dry-run", "--log", log]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("about, for 1 session")
    assert err.splitlines()[1:] == ["No price is known for strange."]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--dry-run"], "no model is named"),
        (["--user-model", "openai/x", "--budget-cost", "-1"], "--budget-cost"),
        (["--models", "openai/x", "--text-actions", "openai/y"], "'openai/y'"),
    ],
)
def test_options_that_make_no_sense_are_one_clear_line(
    options: list[str],
    complaint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "log.db"
    command = ["run", "travel", "--agents", "auto", "--sessions", "1", "--log", str(path)]
    code = main([*command, *options])
    err = capsys.readouterr().err
    assert code == 2
    assert complaint in err
    assert err.count("\n") == 1
    assert not path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("trips", [2, pytest.param(20, marks=pytest.mark.soak)])
def test_killed_in_the_middle_of_three_agents_on_many_trips(
    trips: int, server: OpenAIServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Once half of the calls are in the log, the program is killed; the same command ends the
    experiment: all sessions, and no reply that the log held was asked for again."""
    path = tmp_path / "log.db"
    command = arguments(server, path, "--sessions", str(trips), "--max-rounds", "4")
    running: list[Forked] = []
    enough = 20 * trips

    def deadly(body: Body) -> Answer:
        if len(server.requests) > enough and running[0].poll() is None:
            running[0].kill()
        return play(body)

    server.answer = deadly
    pipe = subprocess.PIPE
    program = ["-P", "-m", "duolog", *command]
    running.append(Forked(program, stdout=pipe, stderr=pipe, models=True))
    _, errors = running[0].communicate()
    assert running[0].returncode == -signal.SIGKILL, errors
    server.until_left()
    held, sent = calls(path), len(server.requests)
    before = ends(path)
    assert len(held) >= enough / 2
    assert "" in before.values()  # some were under way
    under_way = sent - len(held)
    assert 0 < under_way <= 64  # as many as may ask at once; the log has all others

    assert main(command) == 0
    out, err = capfd.readouterr()
    assert "resumed" in err
    assert KEY not in out + err

    after = ends(path)
    assert len(after) == 3 * trips
    assert set(before) <= set(after)
    assert {cell(name) for name in after} == {(a, str(i)) for a in AGENTS for i in range(trips)}
    assert set(after.values()) == {"finished", "limit"}

    # Each request of the second run is recorded, and none is one whose reply the log held: the same
    # request is never made twice.
    made = calls(path)
    assert made[: len(held)] == held
    assert len(made) - len(held) == len(server.requests) - sent
    assert Counter(call[:3] for call in made).most_common(1)[0][1] == 1
    assert nowhere(KEY, tmp_path)


def cell(session: str) -> tuple[str, str]:
    """Agent and instance that the id of a session names."""
    _, instance, rest = session.split("-", 2)
    return next(agent for agent in AGENTS if rest.startswith(agent)), instance
