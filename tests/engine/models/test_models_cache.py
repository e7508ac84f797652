"""The response cache: its hits, its misses, and damaged entries."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import anyio
import msgspec
import pytest
from duolog.engine.errors import InvalidInput, ModelTimeout
from duolog.engine.events import Tokens
from duolog.engine.models import (
    Asker,
    Budget,
    Message,
    ModelReply,
    ModelRequest,
    Models,
    ResponseCache,
    ScriptedModel,
    Spending,
    request_digest,
)

REQUEST = ModelRequest(model="m", messages=(Message(role="user", content="Hello"),), seed=1)
OTHER = msgspec.structs.replace(REQUEST, seed=2)
REPLY = ModelReply(
    text="Hello yourself", tokens=Tokens(prompt=1, completion=2), cost=0.5, latency=1.5, model="m-1"
)


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


class Counting:
    """Answers each time with a new number."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        return msgspec.structs.replace(REPLY, text=str(self.calls))


async def test_a_request_is_answered_the_same_again(tmp_path: Path) -> None:
    answer = Counting()
    cache = ResponseCache(tmp_path / "cache")
    models = Models(ScriptedModel(answer), cache=cache)
    first = await models.attempt(REQUEST)
    asked = msgspec.structs.replace(REQUEST, asker=Asker("another session", "agent"))
    again = await models.attempt(asked)
    assert first.text == again.text == "1"
    assert (again.tokens, again.model) == (first.tokens, first.model)
    assert (first.from_cache, first.cost, again.from_cache, again.cost) == (False, 0.5, True, 0.0)
    assert answer.calls == 1
    statistics = models.statistics()
    assert (statistics.hits, statistics.misses) == (1, 1)
    assert statistics.spent == Spending(calls=2, cached=1, prompt=1, completion=2, cost=0.5)


async def test_any_difference_is_another_request(tmp_path: Path) -> None:
    answer = Counting()
    models = Models(ScriptedModel(answer), cache=ResponseCache(tmp_path))
    for change in ({}, {"seed": 2}, {"temperature": 0.5}, {"model": "n"}, {"stop": ("x",)}):
        await models.attempt(msgspec.structs.replace(REQUEST, **change))
    assert answer.calls == 5


async def test_another_program_finds_it(tmp_path: Path) -> None:
    await ResponseCache(tmp_path).put(REQUEST, REPLY)
    held = await ResponseCache(tmp_path).get(REQUEST)
    assert held == msgspec.structs.replace(REPLY, cost=0.0, latency=0.0, from_cache=True)


async def test_off_unless_asked_for() -> None:
    answer = Counting()
    models = Models(ScriptedModel(answer))
    assert [(await models.attempt(REQUEST)).text for _ in range(3)] == ["1", "2", "3"]


async def test_failures_are_not_kept(tmp_path: Path) -> None:
    def fail(request: ModelRequest) -> str:
        raise ModelTimeout("x")

    models = Models(ScriptedModel(fail), cache=ResponseCache(tmp_path))
    for _ in range(2):
        with pytest.raises(ModelTimeout):
            await models.attempt(REQUEST)
    assert models.statistics().misses == 2


async def test_a_budget_that_is_used_up_still_has_what_was_paid_for(tmp_path: Path) -> None:
    await ResponseCache(tmp_path).put(REQUEST, REPLY)
    models = Models(
        ScriptedModel(Counting()), cache=ResponseCache(tmp_path), budget=Budget(tokens=0)
    )
    assert (await models.attempt(REQUEST)).text == REPLY.text


@pytest.mark.parametrize("damage", [b"", b"{", b'{"reply": 4}', b"\xff\xfe"])
async def test_a_damaged_entry_is_as_good_as_none(
    damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ResponseCache(tmp_path)
    await cache.put(REQUEST, REPLY)
    [path] = files(tmp_path)
    path.write_bytes(damage)
    with caplog.at_level(logging.WARNING, "duolog.models"):
        assert await cache.get(REQUEST) is None
    assert "response_cache_entry_unreadable" in caplog.text
    await cache.put(REQUEST, REPLY)
    assert await cache.get(REQUEST) is not None
    assert files(tmp_path) == [path]


async def test_a_directory_that_is_none_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    cache = ResponseCache(tmp_path / "file")
    with pytest.raises(InvalidInput, match="cannot read the response cache"):
        await cache.get(REQUEST)
    with pytest.raises(InvalidInput, match="cannot write the response cache"):
        await cache.put(REQUEST, REPLY)


async def test_a_reply_that_cannot_be_kept_is_a_reply_still(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    models = Models(ScriptedModel(Counting()), cache=ResponseCache(tmp_path / "cache"))
    await models.attempt(REQUEST)
    (tmp_path / "cache" / request_digest(OTHER)[:2]).write_text("in the way", encoding="utf-8")
    with pytest.raises(InvalidInput, match="cannot read"):  # nobody was asked
        await models.attempt(OTHER)
    (tmp_path / "cache" / request_digest(OTHER)[:2]).unlink()
    (tmp_path / "cache").rename(tmp_path / "away")

    class Vandal:
        async def complete(self, request: ModelRequest) -> ModelReply:
            await anyio.Path(tmp_path, "cache").write_text("in the way", encoding="utf-8")
            return ModelReply(text="an answer")

    models = Models(Vandal(), cache=ResponseCache(tmp_path / "cache"))
    assert (await models.attempt(REQUEST)).text == "an answer"
    assert "response_cache_not_written" in caplog.text


async def test_who_asked_is_not_kept(tmp_path: Path) -> None:
    asked = msgspec.structs.replace(REQUEST, asker=Asker("the session", "the actor"))
    await ResponseCache(tmp_path).put(asked, REPLY)
    [path] = files(tmp_path)
    assert "the session" not in path.read_text(encoding="utf-8")


async def test_what_cannot_be_written_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*names: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InvalidInput, match="No space left"):
        await ResponseCache(tmp_path).put(REQUEST, REPLY)
    assert files(tmp_path) == []
