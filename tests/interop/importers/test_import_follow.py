"""Growing files are followed: additions are recorded once, and in order."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import duolog
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, ModelCalled, Origin, SessionOpened
from duolog.engine.log.contract import EventLog
from duolog.interop.agui.file_importer import AguiImporter
from duolog.interop.importers.claude_code.sessions import ClaudeCodeImporter
from duolog.interop.importers.codex import CodexImporter
from duolog.interop.importers.follow import follow_foreign
from duolog.interop.importers.protocol import Diagnostic, Importer
from duolog.interop.importers.run import import_foreign

EVERY = 0.005


def line(number: int, kind: str, text: str) -> str:
    message: dict[str, object] = {"role": kind, "content": [{"type": "text", "text": text}]}
    if kind == "assistant":
        message |= {"id": f"r{number // 2}", "model": "m", "usage": {"output_tokens": number}}
    parent = f"u{number - 1}" if number else None
    held = {"type": kind, "uuid": f"u{number}", "parentUuid": parent, "sessionId": "s"}
    return json.dumps({**held, "message": message}) + "\n"


async def add(path: Path, text: str) -> None:
    async with await anyio.Path(path).open("a", encoding="utf-8") as file:
        await file.write(text)


@asynccontextmanager
async def followed(
    log: EventLog,
    source: Path,
    importer: Importer | None,
    on_import: Callable[[Path, int, tuple[Diagnostic, ...]], None] | None = None,
) -> AsyncIterator[None]:
    """Follows a source for ten seconds at most, while something is done."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            lambda: follow_foreign(log, source, importer, every=EVERY, on_import=on_import)
        )
        with anyio.fail_after(120):
            yield
        tasks.cancel_scope.cancel()


async def messages(log: EventLog) -> AsyncGenerator[str, None]:
    async with log.subscribe() as records:
        async for record in records:
            if isinstance(record.event, MessageSent):
                yield record.event.text


@pytest.mark.asyncio
async def test_what_is_added_is_recorded_as_it_is_complete(tmp_path: Path) -> None:
    source = tmp_path / "s.jsonl"
    await add(source, line(0, "user", "Hello"))
    async with duolog.open("memory://") as log:
        async with followed(log, source, ClaudeCodeImporter()):
            said = messages(log)
            assert await anext(said) == "Hello"
            more = line(3, "assistant", "Two.")
            await add(source, line(2, "assistant", "One.").replace('"u1"', '"u0"') + more[:20])
            assert await anext(said) == "One."
            await add(source, more[20:])
            assert await anext(said) == "Two."
            await add(source, line(4, "user", "Thanks"))
            assert await anext(said) == "Thanks"
            await said.aclose()
        used = [record.event async for record in log.read("s")]
    calls = [event for event in used if isinstance(event, ModelCalled)]
    assert [call.tokens.completion for call in calls] == [3]


@pytest.mark.asyncio
async def test_new_files_of_a_directory_are_found_and_problems_told(tmp_path: Path) -> None:
    send, told = anyio.create_memory_object_stream[tuple[str, int, int]](10)

    def show(path: Path, records: int, problems: tuple[Diagnostic, ...]) -> None:
        send.send_nowait((path.name, records, len(problems)))

    source = tmp_path / "a.jsonl"
    async with duolog.open("memory://") as log, send, told, followed(log, tmp_path, None, show):
        await add(source, line(0, "user", "Hello"))
        assert await told.receive() == ("a.jsonl", 2, 0)
        await add(source, '{"type": 5}\n')
        assert await told.receive() == ("a.jsonl", 0, 1)


@pytest.mark.asyncio
async def test_a_source_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async with duolog.open("memory://") as log:
        with pytest.raises(InvalidInput, match="No such file"):
            await follow_foreign(log, tmp_path / "none", ClaudeCodeImporter())


def codex(kind: str, **payload: object) -> str:
    return json.dumps({"type": kind, "payload": payload}) + "\n"


def codex_said(role: str, text: str) -> str:
    content = [{"type": "text", "text": text}]
    return codex("response_item", type="message", role=role, content=content)


async def said_by_session(log: EventLog) -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    async for record in log.read_all():
        if isinstance(record.event, MessageSent):
            told.setdefault(record.session, []).append(record.event.text)
    return told


@pytest.mark.asyncio
async def test_what_a_person_takes_back_stays_and_what_goes_on_is_a_fork(tmp_path: Path) -> None:
    source = tmp_path / "r.jsonl"
    back = codex("event_msg", type="thread_rolled_back", num_turns=1)
    problems: list[Diagnostic] = []
    async with duolog.open("memory://") as log:
        said = messages(log)
        asked = codex_said("user", "one") + codex_said("assistant", "1")
        await add(source, codex("session_meta", id="r") + asked + codex_said("user", "two"))
        importer = CodexImporter()
        async with followed(log, source, importer, lambda *found: problems.extend(found[2])):
            assert [await anext(said) for _ in range(3)] == ["one", "1", "two"]
            await add(source, back)
            await add(source, codex_said("user", "three"))
            assert [await anext(said) for _ in range(3)] == ["one", "1", "three"]
            await add(source, codex_said("assistant", "3"))
            assert await anext(said) == "3"
            await add(source, back + codex_said("user", "four"))
            assert [await anext(said) for _ in range(3)] == ["one", "1", "four"]
            await said.aclose()
        everything = [record.event async for record in log.read_all()]
        assert [one.forked_from for one in everything if isinstance(one, SessionOpened)] == [
            None,
            Origin(session="r", version=3),
            Origin(session="r-line-2", version=3),
        ]
        assert await said_by_session(log) == {
            "r": ["one", "1", "two"],
            "r-line-2": ["one", "1", "three", "3"],
            "r-line-3": ["one", "1", "four"],
        }
    assert problems == []


@pytest.mark.asyncio
async def test_what_was_imported_while_a_reply_went_on_is_followed_as_one_session(
    tmp_path: Path,
) -> None:
    source = tmp_path / "s.jsonl"
    await add(source, line(0, "user", "Hello") + line(1, "assistant", "One.").replace("r0", "r1"))
    async with duolog.open("memory://") as log:
        await import_foreign(log, source, ClaudeCodeImporter())
        said = messages(log)
        await add(source, line(2, "assistant", "Two."))
        async with followed(log, source, ClaudeCodeImporter()):
            assert [await anext(said) for _ in range(3)] == ["Hello", "One.", "Two."]
            await add(source, line(3, "user", "Thanks"))
            assert await anext(said) == "Thanks"
            await said.aclose()
        assert await said_by_session(log) == {"s": ["Hello", "One.", "Two.", "Thanks"]}
        calls = [record.event async for record in log.read("s")]
    used = [one.tokens.completion for one in calls if isinstance(one, ModelCalled)]
    assert used == [1, 1]


@pytest.mark.asyncio
async def test_a_message_of_a_stream_is_recorded_once_it_has_come_to_its_end(
    tmp_path: Path,
) -> None:
    def event(kind: str, **fields: str) -> str:
        return json.dumps({"type": kind, **fields}) + "\n"

    def piece(text: str) -> str:
        return event("TEXT_MESSAGE_CONTENT", messageId="m", delta=text)

    source = tmp_path / "s.jsonl"
    problems: list[Diagnostic] = []
    begun = event("RUN_STARTED", threadId="t", runId="r")
    begun += event("TEXT_MESSAGE_START", messageId="m", role="assistant") + piece("Hel")
    end = event("TEXT_MESSAGE_END", messageId="m")
    await add(source, begun)
    async with duolog.open("memory://") as log:
        said = messages(log)
        importer = AguiImporter()
        async with (
            log.subscribe(session="t") as records,
            followed(log, source, importer, lambda *found: problems.extend(found[2])),
        ):
            await anext(records)  # the opening: the beginning of the file was read
            await add(source, piece("lo") + end[:10])
            await add(source, end[10:])
            assert await anext(said) == "Hello"
            await said.aclose()
        assert await said_by_session(log) == {"t": ["Hello"]}
    assert problems == []


@pytest.mark.asyncio
async def test_following_anew_goes_on_with_the_last_line(tmp_path: Path) -> None:
    source = tmp_path / "s.jsonl"
    async with duolog.open("memory://") as log:

        async def until(text: str) -> None:
            async with followed(log, source, ClaudeCodeImporter()):
                while text not in str(await said_by_session(log)):  # noqa: ASYNC110
                    await anyio.sleep(EVERY)

        await add(source, line(0, "user", "Hello") + line(1, "assistant", "Yes?"))
        await add(source, line(2, "user", "Go"))
        await until("Go")
        await add(source, line(3, "user", "Stop").replace('"u2"', '"u1"'))
        await until("Stop")
        await add(source, line(4, "assistant", "Stopped."))
        await until("Stopped.")
        assert await said_by_session(log) == {
            "s": ["Hello", "Yes?", "Go"],
            "s-line-2": ["Hello", "Yes?", "Stop", "Stopped."],
        }


@pytest.mark.asyncio
async def test_a_session_whose_source_has_changed_is_refused_as_a_whole(tmp_path: Path) -> None:
    source = tmp_path / "r.jsonl"
    await add(source, codex("session_meta", id="r") + codex_said("user", "one"))
    await add(source, codex_said("user", "two"))
    async with duolog.open("memory://") as log:
        await import_foreign(log, source, CodexImporter())
        back = codex("event_msg", type="thread_rolled_back", num_turns=1)
        await add(source, back)  # the log has what was taken back, as the session itself
        taken = await import_foreign(log, source, CodexImporter())
        assert (taken.records, taken.forks, taken.parted) == (0, 0, {})
        await add(source, codex_said("user", "three"))
        with pytest.raises(InvalidInput, match="another MessageSent at version 3"):
            await import_foreign(log, source, CodexImporter())
        taken = await import_foreign(log, source, CodexImporter(), keep_going=True)
        assert (taken.records, taken.forks, taken.parted) == (0, 0, {"r": 2})
        assert await said_by_session(log) == {"r": ["one", "two"]}


@pytest.mark.asyncio
async def test_a_problem_is_told_once_however_often_its_file_changes(tmp_path: Path) -> None:
    source = tmp_path / "s.jsonl"
    told: list[tuple[int, tuple[Diagnostic, ...]]] = []
    await add(source, line(0, "user", "Hello") + '{"type": 5}\n')
    async with duolog.open("memory://") as log:
        said = messages(log)
        importer = ClaudeCodeImporter()
        async with followed(log, source, importer, lambda _, *found: told.append(found)):
            assert await anext(said) == "Hello"
            await add(source, line(1, "assistant", "Yes?"))
            assert await anext(said) == "Yes?"
            while len(told) < 2:  # noqa: ASYNC110
                await anyio.sleep(EVERY)
            await said.aclose()
    assert [(records, len(problems)) for records, problems in told] == [(2, 1), (1, 0)]
