"""``duolog fork`` of sessions on models: the replies up to the cut are taken from the log, what follows
is asked anew, and a rule or another model can take over."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec
import pytest
from duolog.cli import main
from duolog.engine.events import ModelCalled
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.engine.session.runner import SessionResult
from duolog.scoring.metrics.forks import Fork
from openai_server import OpenAIServer
from travel_model import play

pytestmark = pytest.mark.slow  # they load LiteLLM, which takes seconds

MODELS = "--models openai/gpt-4o --user-model openai/gpt-4o-mini --judge-model openai/gpt-4o-mini"
SESSION = "travel-1-one-stage"


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    """Plays all parts of travel planning."""
    with OpenAIServer(answer=play).running() as server:
        yield server


@pytest.fixture(scope="module")
def played(
    server: OpenAIServer, tmp_path_factory: pytest.TempPathFactory, litellm_at_work: None
) -> Path:
    """A log with the session."""
    path = tmp_path_factory.mktemp("played") / "models.db"
    run = ["run", "travel", "--agents", "one-stage", "--instances", "1", "--seed", "7"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-none")
        assert main([*run, *MODELS.split(), "--api-base", server.url, "--log", str(path)]) == 0
    return path


@pytest.fixture
def log(
    played: Path,
    server: OpenAIServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """A copy of the log."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    server.requests.clear()
    capsys.readouterr()
    return str(shutil.copy(played, tmp_path / "models.db"))


class Made(msgspec.Struct):
    """What ``duolog fork --json`` prints."""

    origin: str
    fork: SessionResult
    comparison: Fork


def records(path: str, session: str) -> list[Record]:
    async def read() -> list[Record]:
        async with open_log(path, create=False) as log:
            return [r async for r in log.read_all() if r.session.startswith(session)]

    return anyio.run(read)


def asked(found: list[Record], after: int) -> int:
    """How many calls were made for what lies after a trace version."""
    count = 0
    for record in found:
        if isinstance(record.event, ModelCalled):
            version = record.version
            if record.stream != "trace":
                version = int((record.cause or "").split("/")[1])
            count += version > after
    return count


def fork(log: str, server: OpenAIServer, *more: str, capsys: pytest.CaptureFixture[str]) -> Made:
    arguments = ["fork", log, SESSION, "--api-base", server.url, "--json", *more]
    assert main(arguments) == 0
    return msgspec.json.decode(capsys.readouterr().out, type=Made)


def said(found: list[Record], session: str) -> list[tuple[object, ...]]:
    """What happened in a session; calls apart, whose ids of tool calls are the server's."""
    return [
        (r.time, r.kind, r.actor, r.body)
        for r in found
        if r.session == session
        and r.stream == "trace"
        and r.kind not in ("ModelCalled", "SessionOpened")
    ]


def test_replies_before_the_cut_are_recorded_ones(
    log: str, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that answers alike gives the same session again, asked for the rest of it alone."""
    made = fork(log, server, "--at-round", "3", capsys=capsys)
    origin, name = made.origin, made.fork.session
    cut = made.comparison.version
    past = records(log, origin)
    assert len(server.requests) == asked(past, cut) > 0
    assert asked(past, 0) > asked(past, cut)
    assert said(records(log, name), name) == said(past, origin)


def test_another_model_takes_over(
    log: str, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    made = fork(log, server, "--at-round", "3", "--model", "openai/gpt-4.1", capsys=capsys)
    cut = made.comparison.version
    assert made.fork.reason == "finished"
    models = {
        (r.version <= cut, r.event.model)
        for r in records(log, made.fork.session)
        if isinstance(r.event, ModelCalled) and r.stream == "trace" and r.actor == "agent"
    }
    assert models == {(True, "openai/gpt-4o"), (False, "openai/gpt-4.1")}


def test_rules_take_over_from_models(
    log: str, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    made = fork(log, server, "--at-round", "2", "--model", "rules", capsys=capsys)
    assert made.fork.reason == "finished"
    assert {body["model"] for body in server.requests} <= {"gpt-4o-mini"}
