"""Searching contents: matches in every store, privacy, and erasure."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

import anyio.to_thread
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, ModelCalled, NoteTaken, SessionOpened
from duolog.engine.log.contract import EventLog, Store
from duolog.engine.log.open import open_log
from duolog.engine.log.searched import Searchable, found_in, phrases_in
from duolog.engine.log.stored import StoredLog
from duolog.engine.records import Draft
from duolog.scoring.index.contents import ContentSearch, TextFold, search_contents, snippet
from duolog.scoring.reviews import Review, add_review
from duolog.testing.postgres_server import PostgresServer
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records

SECRET = "zebrafinch"


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        yield server.url()
    else:
        yield "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/a.db"


def talk(session: str, *texts: str) -> RecordWriter:
    script = RecordWriter(session)
    script.opened(clock="virtual")
    for text in texts:
        script.human(text)
    return script


@asynccontextmanager
async def filled(url: str) -> AsyncIterator[Store]:
    async with open_log(url) as log:
        await put_records(log, talk("a", "I want a refund.", "Two beds, please").records)
        await put_records(log, talk("b", "refunds take a week", "an e-mail to ann@x.org").records)
        await put_records(log, talk("c", "Straße, 東京, naïve", "nothing else").records)
        yield log


async def sessions_with(log: EventLog, text: str) -> list[str]:
    _, found = await search_contents(log, text)
    return sorted(found.sessions)


async def test_words_and_phrases_are_found_in_every_store(url: str) -> None:
    async with filled(url) as log:
        assert await sessions_with(log, "REFUND") == ["a", "b"]
        assert await sessions_with(log, "refunds") == ["b"]
        assert await sessions_with(log, "beds refund") == ["a"]
        assert await sessions_with(log, '"two beds"') == ["a"]
        assert await sessions_with(log, '"beds two"') == []
        assert await sessions_with(log, "ann@x.org") == ["b"]
        assert await sessions_with(log, "STRAßE naïve") == ["c"]
        assert await sessions_with(log, "東京") == ["c"]
        for hostile in ('refund" OR "nothing', "refund' | 'nothing", "refund:* & !x", "NEAR(a b)"):
            assert "c" not in await sessions_with(log, hostile)
        for empty in ("", "!!", '"'):
            with pytest.raises(InvalidInput, match="letters or digits"):
                await search_contents(log, empty)


async def test_new_records_and_reviews_are_found(url: str) -> None:
    async with filled(url) as log:
        search = ContentSearch(log)
        assert not (await search.find("later")).sessions
        await log.append("c", [Draft(MessageSent("come back later"), "ann", "human", 9.0)])
        await add_review(log, "a", "anna", Review(tags=("wrong-goal",), comment="Never asked."))
        assert (await search.find("later")).sessions == {"c"}
        assert (await search.find("wrong goal asked")).sessions == {"a"}
        assert await search.snippets("later", ["a", "c"]) == {
            "c": "Straße, 東京, naïve nothing else come back later"
        }


async def test_forgotten_sessions_are_not_found(url: str) -> None:
    async with filled(url) as log:
        search = ContentSearch(log)
        assert (await search.find("refund")).sessions == {"a", "b"}
        await log.forget("a")
        assert (await search.find("refund")).sessions == {"b"}
        assert await search.snippets("refund", ["a"]) == {}


def raw(directory: Path) -> bytes:
    """The bytes of the files, read by another process: a program with an open log must not open them."""
    command = ["cat", *sorted(map(str, directory.iterdir()))]
    return subprocess.run(command, capture_output=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("chained", [False, True])
async def test_forgetting_leaves_no_word_in_the_files(tmp_path: Path, chained: bool) -> None:
    async with open_log(f"sqlite:///{tmp_path}/a.db?chain={'yes' if chained else 'no'}") as log:
        for number in range(30):
            text = f"the bird is a {SECRET}{number}" if number < 20 else f"a sparrow {number}"
            await put_records(log, talk(f"s{number}", text).records)
            if number % 3 == 0:
                await ContentSearch(log).update()
        assert (await ContentSearch(log).find(SECRET)).sessions
        assert SECRET.encode() in await anyio.to_thread.run_sync(raw, tmp_path)
        assert (await log.forget([f"s{number}" for number in range(20)])).compacted
        found = await anyio.to_thread.run_sync(raw, tmp_path)
        assert SECRET.encode() not in found
        assert b"sparrow" in found
        assert len((await ContentSearch(log).find("sparrow")).sessions) == 10
        assert not (await log.verify()).problems


@pytest.mark.slow
async def test_forgetting_leaves_no_word_in_postgresql(postgres: PostgresServer) -> None:
    async with open_log(postgres.url()) as log:
        await put_records(log, talk("s", f"a {SECRET}").records)
        await put_records(log, talk("t", "a sparrow").records)
        await ContentSearch(log).update()
        await log.forget("s")
        assert (await log.vacuum()).finished
        assert isinstance(log, Searchable)
        assert await log.search_texts([[SECRET]], 1) == []
        assert await log.found_texts([[SECRET]], 1, ["s"]) == []
        assert await log.search_texts([["sparrow"]], 1) == ["t"]


async def test_a_log_that_is_only_read_is_searched_too(tmp_path: Path) -> None:
    async with filled(f"sqlite:///{tmp_path}/a.db") as log:
        assert isinstance(log, StoredLog)
        with patch.object(type(log), "keep_texts", return_value=0):
            assert await sessions_with(log, "refund") == ["a", "b"]


def test_nothing_private_can_be_searched() -> None:
    script = RecordWriter("s")
    script.add(
        SessionOpened(
            task="t", instance="1", participants=(), clock="virtual", private={"ann": SECRET}
        ),
        "engine",
        "environment",
    )
    script.add(NoteTaken(SECRET), "bot", "agent")
    script.add(ModelCalled(model="m", purpose="act", request="r", reply=SECRET), "bot", "agent")
    script.human("open words")
    fold = TextFold("s")
    for record in script.records:
        fold.feed(record)
    assert fold.text.parts == ("open words",)


def test_repeated_lines_count_once_and_long_texts_have_parts() -> None:
    fold = TextFold("s")
    for record in talk("s", "same line\nother", "same line", "x" * 250_000).records:
        fold.feed(record)
    first, *others = fold.text.parts
    assert first == "same line\nother"
    assert [len(part) for part in others] == [100_000, 100_000, 50_000]


def test_a_snippet_is_the_text_around_the_first_match() -> None:
    text = "word " * 30 + "the Refund-policy of\nthe shop" + " word" * 30
    shown = snippet(text, phrases_in("refund"))
    assert "the Refund-policy of the shop" in shown
    assert shown.startswith("…")
    assert len(shown) < 130
    assert snippet(text, phrases_in("fund")) == ""
    assert found_in(text, phrases_in('"refund policy" shop'))
